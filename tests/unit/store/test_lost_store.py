"""A store that was lost is not silently replaced by a new one."""

import asyncio
from pathlib import Path

import pytest

from keryx.errors import StoreUnavailable
from keryx.store.sqlite import SqliteDatabase


def open_and_close(path: Path, folder: Path | None = None) -> None:
    asyncio.run(SqliteDatabase.open(path, marker_folder=folder).close())


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "volume" / "keryx.db"
    open_and_close(path, tmp_path / "data")
    return path


@pytest.fixture(autouse=True)
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("left", ["keryx.db-created", "keryx.db-search", "keryx.db-wal"])
@pytest.mark.parametrize("is_empty", [False, True])
def test_a_missing_or_empty_file_beside_others_is_refused(store: Path, left: str, *, is_empty: bool) -> None:
    (store.parent / "keryx.db-wal").write_bytes(b"committed")
    for each in store.parent.iterdir():
        if each.name != left:
            each.unlink()
    if is_empty:
        store.touch()
    what = "empty" if is_empty else "missing"
    with pytest.raises(
        StoreUnavailable, match=rf"is {what}, but there was one: .*{left} .*Nothing was changed"
    ):
        open_and_close(store)
    assert (store.exists(), (store.parent / left).stat().st_size > 0) == (is_empty, True)


def test_a_store_whose_whole_folder_is_lost_is_refused(store: Path, data: Path) -> None:
    for each in store.parent.iterdir():
        each.unlink()
    with pytest.raises(StoreUnavailable, match=r"is missing, but there was one: .*store-.*-created"):
        open_and_close(store, data)
    for each in data.iterdir():
        each.unlink()
    open_and_close(store, data)


def test_a_restored_store_opens(store: Path, data: Path) -> None:
    content = store.read_bytes()
    store.unlink()
    store.write_bytes(content)
    open_and_close(store, data)


def test_an_empty_file_alone_is_a_first_start(tmp_path: Path) -> None:
    (tmp_path / "keryx.db").touch()
    (tmp_path / "keryx.db-search").touch()
    open_and_close(tmp_path / "keryx.db")


def test_a_store_opens_where_no_marker_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    open_and_close(tmp_path / "keryx.db", tmp_path / "file")


def test_another_store_of_the_profile_is_a_first_start(store: Path, data: Path, tmp_path: Path) -> None:
    assert store.exists()
    open_and_close(tmp_path / "other.db", data)
