"""The files of an embedded store: private, durable, and never lost to a damaged index."""

import asyncio
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import apsw
import pytest

from keryx.clock import SystemClock
from keryx.errors import StoreCorrupt, StoreUnavailable
from keryx.ids import Ids
from keryx.store import sqlite_files
from keryx.store.database import ReadTx, Tx
from keryx.store.sqlite import SqliteDatabase
from keryx.store.sqlite_files import LOG_BYTES_MAX, index_path
from keryx.store.sqlite_writer import CHECKPOINT_PAGES, LOCK_WAIT, Writer, translate
from tests.conformance.talk import Talk

BIG_TEXT = "word " * 60_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "keryx.db"


def build_index(tx: Tx) -> None:
    """Fill the index with more than one page."""
    tx.run("search_state.begin", format=1)
    for number in range(100):
        tx.run("search_segments.add_chunk", segment_id=1, chunk=number, data=bytes(2_000))


async def test_files_and_folder_are_private_to_their_owner(path: Path) -> None:
    database = SqliteDatabase.open(path)
    await database.write_index(build_index)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == dict.fromkeys(
        [path.name + end for end in ("", "-wal", "-shm", "-created")], 0o600
    ) | dict.fromkeys([index_path(path).name + end for end in ("", "-wal", "-shm")], 0o600)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    await database.close()


async def test_the_store_is_in_wal_mode_and_closing_leaves_one_file_each(path: Path) -> None:
    database = SqliteDatabase.open(path)
    await database.close()
    databases = [path, index_path(path)]
    marker = path.with_name(f"{path.name}-created")
    assert sorted(path.parent.iterdir()) == sorted([*databases, marker])
    for file in databases:
        assert file.read_bytes()[18:20] == b"\x02\x02"  # "WAL" in the file format


def test_a_file_that_is_no_database_is_refused_and_unchanged(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database" * 1000)
    with pytest.raises(StoreCorrupt, match="damaged or not a database"):
        SqliteDatabase.open(path)
    assert path.read_bytes() == b"not a database" * 1000


def _garbage(data: bytes) -> bytes:
    return b"garbage!" * (len(data) // 8)


def _half(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _torn_middle(data: bytes) -> bytes:
    return data[:8192] + b"\xaa" * (len(data) - 8192)


def _empty(_data: bytes) -> bytes:
    return b""


@pytest.mark.parametrize("damage", [_garbage, _half, _torn_middle, _empty])
async def test_a_damaged_index_is_emptied_and_messages_are_unchanged(
    path: Path, ids: Ids, damage: Callable[[bytes], bytes]
) -> None:
    database = SqliteDatabase.open(path)
    session_id = await (await Talk.begin(database, ids)).session("kept", "too")
    await database.write_index(build_index)
    await database.close()
    index_path(path).write_bytes(damage(index_path(path).read_bytes()))

    database = SqliteDatabase.open(path)
    talk = await Talk.begin(database, ids)
    await talk.append(session_id, "user", "goes on")
    await database.write_index(lambda tx: (tx.run("search_segments.clear_chunks"), build_index(tx)))  # type: ignore[func-returns-value]
    assert await database.read(lambda tx: tx.row("search_state.find")) == (1, 0, 0)
    assert len(await database.read(lambda tx: tx.rows("search_segments.list_chunks", segment_id=1))) == 100
    assert await talk.texts(session_id) == ["kept", "too", "goes on"]
    await database.close()


async def test_the_log_is_emptied_while_messages_are_written_without_a_pause(path: Path, ids: Ids) -> None:
    database = SqliteDatabase.open(path)
    talk = await Talk.begin(database, ids)
    session_id = await talk.session()
    for number in range(60):
        await talk.append(session_id, "user", f"{number} {BIG_TEXT}")
    assert _size(path) > CHECKPOINT_PAGES * 4096
    assert _size(path.with_name(f"{path.name}-wal")) < 2 * CHECKPOINT_PAGES * 4096
    await database.close()


def _size(path: Path) -> int:
    return path.stat().st_size


async def test_the_log_of_the_index_does_not_grow_forever(path: Path) -> None:
    database = SqliteDatabase.open(path)
    for number in range(12):
        await database.write_index(
            lambda tx, number=number: tx.run(  # type: ignore[misc]
                "search_segments.add_chunk", segment_id=1, chunk=number, data=bytes(1_000_000)
            )
        )
    log = index_path(path).with_name(index_path(path).name + "-wal")
    assert log.stat().st_size < 3 * CHECKPOINT_PAGES * 4096
    await database.close()


async def test_a_long_read_that_blocks_emptying_the_log_is_ended(path: Path, ids: Ids) -> None:
    database = SqliteDatabase.open(path)
    talk = await Talk.begin(database, ids)
    session_id = await talk.session()
    clock = SystemClock()
    reading = asyncio.Event()
    loop = asyncio.get_running_loop()

    def read_for_ever(tx: ReadTx) -> None:
        tx.row("people.find_owner")
        loop.call_soon_threadsafe(reading.set)
        give_up_at = clock.monotonic() + 60_000_000
        while clock.monotonic() < give_up_at:
            tx.row("people.find_owner")

    slow = asyncio.create_task(database.read(read_for_ever))
    await reading.wait()
    huge = "x" * (LOG_BYTES_MAX // 8)
    for _ in range(9):
        await talk.append(session_id, "user", huge)
    with pytest.raises(StoreUnavailable, match="ask for less"):
        await slow
    await database.close()


async def test_two_processes_can_open_a_new_store_at_once(path: Path) -> None:
    databases = await asyncio.gather(*(asyncio.to_thread(SqliteDatabase.open, path) for _ in range(4)))
    for database in databases:
        assert await database.read(lambda tx: tx.row("people.find_owner")) is None
        await database.close()


class HastyClock(SystemClock):
    """A clock that advances a second at each reading, so that a wait of half a minute takes milliseconds."""

    def __init__(self) -> None:
        super().__init__()
        self._looks = 0

    def monotonic(self) -> int:
        self._looks += 1
        return self._looks * 1_000_000


class StillClock(SystemClock):
    """A clock that stands still."""

    def monotonic(self) -> int:
        return 0


async def test_tasks_that_write_one_after_the_other_share_a_commit(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "x.db"))
    connection.execute("CREATE TABLE t (x)")
    commits: list[None] = []

    def count() -> list[asyncio.Future[None]]:
        commits.append(None)
        return []

    writer = Writer(connection, StillClock(), name="test", on_commit=count)

    async def write(rounds: int) -> None:
        for _ in range(rounds):
            await asyncio.sleep(0)
        time.sleep(0.01)  # noqa: ASYNC251 - a task at work: time enough for the thread to begin, if it was called
        await writer.run(lambda: connection.execute("INSERT INTO t VALUES (?)", (rounds,)))

    await asyncio.gather(*map(write, range(5)))
    writer.stop()
    assert connection.execute("SELECT x FROM t").fetchall() == [(number,) for number in range(5)]
    assert len(commits) == 1
    connection.close()


async def test_a_writer_that_stops_still_writes_gathered_jobs(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "x.db"))
    connection.execute("CREATE TABLE t (x)")
    writer = Writer(connection, SystemClock(), name="test")
    writing = asyncio.create_task(writer.run(lambda: connection.execute("INSERT INTO t VALUES (1)")))
    await asyncio.sleep(0)
    writer.stop()
    done, _ = await asyncio.wait({writing}, timeout=10)
    assert done
    assert connection.execute("SELECT x FROM t").fetchall() == [(1,)]
    connection.close()


async def test_a_lock_that_is_never_released_fails_all_waiting_writes(tmp_path: Path) -> None:
    holder, waiter = (apsw.Connection(str(tmp_path / "x.db")) for _ in range(2))
    holder.execute("PRAGMA journal_mode=WAL; CREATE TABLE t (x); BEGIN IMMEDIATE").fetchall()
    writer = Writer(waiter, HastyClock(), name="test")
    assert LOCK_WAIT == 30_000_000
    waiting = [
        asyncio.create_task(writer.run(lambda: waiter.execute("INSERT INTO t VALUES (1)"))) for _ in range(3)
    ]
    for error in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(error, StoreUnavailable)
        assert "kept the store locked for 30 seconds" in str(error)
    holder.execute("COMMIT")
    await writer.run(lambda: waiter.execute("INSERT INTO t VALUES (2)"))
    writer.stop()
    assert holder.execute("SELECT x FROM t").fetchall() == [(2,)]
    with pytest.raises(StoreUnavailable, match="was closed"):
        await writer.run(lambda: None)
    holder.close()
    waiter.close()


async def test_a_writer_whose_file_is_no_database_says_so(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"not a database" * 1_000)
    connection = apsw.Connection(str(tmp_path / "x.db"))
    writer = Writer(connection, SystemClock(), name="test")
    with pytest.raises(StoreCorrupt, match="not a database"):
        await writer.run(lambda: None)
    writer.stop()
    connection.close()


async def test_a_busy_writer_leaves_other_processes_a_moment(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "x.db"))
    # With a second between any two looks, every batch holds the lock far longer than is fair.
    writer = Writer(connection, HastyClock(), name="test")
    connection.execute("CREATE TABLE t (x)")
    for number in range(3):
        await writer.run(lambda number=number: connection.execute("INSERT INTO t VALUES (?)", (number,)))  # type: ignore[misc]
    writer.stop()
    assert connection.execute("SELECT count(*) FROM t").fetchall() == [(3,)]
    connection.close()


def test_an_error_of_the_driver_is_translated_and_keeps_its_cause() -> None:
    for error, ours in [
        (apsw.FullError("disk full"), StoreUnavailable),
        (apsw.IOError("i/o"), StoreUnavailable),
        (apsw.CorruptError("malformed"), StoreCorrupt),
        (apsw.NotADBError("no database"), StoreCorrupt),
    ]:
        translated = translate(error)
        assert type(translated) is ours
        assert translated.__cause__ is error
    other = KeyError("x")
    assert translate(other) is other


class Contended:
    """A connection to a new file that others switch to a log at the same moment."""

    def __init__(self, path: Path, *, busy: int) -> None:
        self._real = apsw.Connection(str(path))
        self._busy = busy

    def config(self, *given: Any) -> Any:
        return self._real.config(*given)

    def execute(self, statement: str) -> Any:
        if "journal_mode" in statement and self._busy:
            self._busy -= 1
            raise apsw.BusyError("database is locked")
        return self._real.execute(statement)


def test_several_processes_may_create_a_store_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_files, "LOG_PAUSE_SECONDS", 0)
    connection = Contended(tmp_path / "new.db", busy=2)
    sqlite_files.set_up(cast(apsw.Connection, connection))
    assert connection.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
    with pytest.raises(apsw.BusyError):
        sqlite_files.set_up(
            cast(apsw.Connection, Contended(tmp_path / "other.db", busy=sqlite_files.LOG_ATTEMPTS_MAX + 1))
        )


async def test_a_read_that_the_driver_ended_raises_its_own_error(path: Path) -> None:
    def read(tx: ReadTx) -> None:
        # As SQLite does when the disk fails.
        tx._connection.execute("ROLLBACK")  # type: ignore[attr-defined]  # noqa: SLF001
        raise apsw.IOError("the disk failed")

    database = SqliteDatabase.open(path)
    with pytest.raises(StoreUnavailable, match="the disk failed"):
        await database.read(read)
    assert await database.read(lambda tx: tx.now) > 0
    await database.close()
