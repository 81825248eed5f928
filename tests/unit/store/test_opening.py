"""Addresses of stores: the file they name, or the error."""

from pathlib import Path

import pytest

from keryx.errors import InvalidValue, StoreError, StoreUnavailable, StoreUnsafe
from keryx.store.opening import open_database, sqlite_path
from keryx.store.postgres import check_server
from keryx.store.sqlite_files import check_version, index_path


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("keryx.db", "keryx.db"),
        ("/var/lib/keryx.db", "/var/lib/keryx.db"),
        ("sqlite:///keryx.db", "keryx.db"),
        ("sqlite:////var/lib/keryx.db", "/var/lib/keryx.db"),
        ("sqlite:///a%20b%3F.db", "a b?.db"),
        ("odd?name#1.db", "odd?name#1.db"),
    ],
)
def test_an_address_names_a_file(address: str, path: str) -> None:
    assert sqlite_path(address) == Path(path)


def test_a_tilde_is_the_home_folder() -> None:
    assert sqlite_path("~/keryx.db") == Path.home() / "keryx.db"
    assert sqlite_path("sqlite:///~/keryx.db") == Path.home() / "keryx.db"


@pytest.mark.parametrize(
    "address",
    ["mysql://host/db", "sqlite://host/keryx.db", "sqlite:///keryx.db?mode=ro", "sqlite:///keryx.db#x"],
)
def test_an_unknown_kind_of_address_is_refused(address: str) -> None:
    with pytest.raises(InvalidValue, match="not an address of a store"):
        sqlite_path(address)


@pytest.mark.parametrize("address", ["", ":memory:", "sqlite://", "sqlite:///", "sqlite:///:memory:"])
def test_a_store_without_a_file_is_refused(address: str) -> None:
    with pytest.raises(InvalidValue, match="names no file"):
        sqlite_path(address)


def test_each_store_in_a_folder_has_its_own_index() -> None:
    names = [index_path(Path("folder") / name) for name in ("a.db", "a.sqlite", "a")]
    assert len(set(names)) == 3
    assert {name.parent for name in names} == {Path("folder")}


@pytest.mark.parametrize("version", ["3.51.2", "3.45.1", "3.51"])
def test_an_unsafe_sqlite_is_refused(version: str) -> None:
    with pytest.raises(StoreUnsafe, match=rf"SQLite {version} can damage"):
        check_version(version)


@pytest.mark.parametrize("version", ["3.51.3", "3.52.0", "4.0.0"])
def test_a_safe_sqlite_is_accepted(version: str) -> None:
    check_version(version)


def test_an_old_postgres_is_refused() -> None:
    check_server(140_000)
    with pytest.raises(StoreUnsafe, match="PostgreSQL 13 is too old"):
        check_server(130_014)


def test_a_server_that_does_not_run_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"(?s)could not be reached.*Check the address"):
        open_database(f"postgresql://keryx@/keryx?host={tmp_path}")


def test_an_invalid_postgres_address_is_refused() -> None:
    with pytest.raises(StoreError, match="could not be opened"):
        open_database("postgresql://keryx@/keryx?nonsense=1")


def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot be opened: .*Name a file in a folder you may write to"):
        open_database(tmp_path / "file" / "keryx.db")


def test_a_folder_is_not_a_store(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="unable to open"):
        open_database(tmp_path)
