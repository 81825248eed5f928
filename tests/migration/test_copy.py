"""A SQLite store is copied before it is migrated."""

import asyncio
import logging
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from keryx.clock import DAY
from keryx.errors import StoreError
from keryx.store.migrate import migrate_sqlite, migrations
from keryx.store.sqlite import SqliteDatabase
from keryx.testing.clock import FakeClock

OLD = 9


class Usage(NamedTuple):
    free: int


def make_old_store(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode=WAL").fetchall()
    migrate_sqlite(connection, now=0, steps=migrations("sqlite")[:OLD])
    connection.execute("INSERT INTO people (name, role, created_at) VALUES ('Ana', 'member', 1)")
    connection.close()


def schema_of(path: Path) -> int:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    number: Any = connection.execute("SELECT MAX(number) FROM keryx_schema").fetchall()[0][0]
    assert connection.execute("SELECT name FROM people").fetchall() == [("Ana",)]
    connection.close()
    return int(number)


def test_the_copy_has_the_old_schema_and_is_named_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, clock = tmp_path / "keryx.db", FakeClock()
    make_old_store(path)
    with caplog.at_level(logging.WARNING, "keryx.store"):
        asyncio.run(SqliteDatabase.open(path, clock=clock).close())
    [copy] = tmp_path.glob("keryx.db.schema-*")
    assert str(copy) in caplog.text
    assert f"from schema {OLD} to {len(migrations('sqlite'))}" in caplog.text
    assert (schema_of(copy), schema_of(path)) == (OLD, len(migrations("sqlite")))
    assert copy.stat().st_mode & 0o777 == 0o600


def test_the_first_start_after_30_days_deletes_the_copy(tmp_path: Path) -> None:
    path, clock = tmp_path / "keryx.db", FakeClock()
    make_old_store(path)
    (tmp_path / "keryx.db.schema-mine").touch()
    (tmp_path / "keryx.db.schema-8-1.part").touch()  # left by a crash
    for days, copies in ((0, 2), (30, 2), (1, 1)):
        clock.advance(days * DAY)
        asyncio.run(SqliteDatabase.open(path, clock=clock).close())
        assert len(list(tmp_path.glob("keryx.db.schema-*"))) == copies


def test_a_new_store_and_a_current_one_are_not_copied(tmp_path: Path) -> None:
    for _ in range(2):
        asyncio.run(SqliteDatabase.open(tmp_path / "keryx.db").close())
    assert list(tmp_path.glob("keryx.db.schema-*")) == []


def test_a_store_that_there_is_no_room_to_copy_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "keryx.db"
    make_old_store(path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(free=100))
    with pytest.raises(StoreError, match=r"too little space: 0\.\d MB are needed and 0\.0 MB are free"):
        SqliteDatabase.open(path)
    assert schema_of(path) == OLD
    assert list(tmp_path.glob("keryx.db.schema-*")) == []


def test_a_damaged_store_is_not_migrated(tmp_path: Path) -> None:
    path = tmp_path / "keryx.db"
    make_old_store(path)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size - 2 * 4096)
        file.write(b"\xff" * 4096)
    with pytest.raises(StoreError, match="damaged"):
        SqliteDatabase.open(path)
    assert list(tmp_path.glob("keryx.db.schema-*")) == []
