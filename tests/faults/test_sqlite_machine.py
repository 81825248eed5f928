"""After a full disk, a broken disk or a power cut, acknowledged writes are stored, refused writes are not."""

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial
from itertools import count
from pathlib import Path

import apsw
import pytest

from keryx.core.conversations.rules.session import SessionId
from keryx.errors import StoreUnavailable
from keryx.ids import Ids
from keryx.store.database import ReadTx, Tx
from keryx.store.sqlite import SqliteDatabase
from keryx.store.sqlite_files import set_up
from keryx.store.sqlite_writer import Writer
from keryx.testing.clock import FakeClock
from tests.conformance.talk import Talk, shown_messages
from tests.faults.disk import Disk, images

LONG = "many words " * 1_000
FAULTS = [("write", apsw.FullError), ("write", apsw.IOError), ("sync", apsw.IOError)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keryx.db"


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
async def talk(path: Path, disk: Disk, ids: Ids) -> AsyncIterator[Talk]:
    database = SqliteDatabase.open(path, vfs=disk.name)
    yield await Talk.begin(database, ids)
    disk.heal()
    await database.close()


async def scenario(talk: Talk, session_id: SessionId, noted: Callable[[str], None]) -> list[str]:
    """Append messages alone and together; return the refused ones, and report each acknowledged one at once."""
    refused = []

    async def append(text: str) -> None:
        try:
            await talk.append(session_id, "user", text)
        except StoreUnavailable:
            refused.append(text)
        else:
            noted(text)

    await append("one")
    await asyncio.gather(*(append(f"{name} {LONG}") for name in ("two", "three", "four")))
    await append("five")
    return refused


@pytest.mark.parametrize(("kind", "error"), FAULTS)
async def test_each_write_is_stored_or_refused_wherever_the_disk_fails(
    tmp_path: Path, ids: Ids, kind: str, error: type[apsw.Error]
) -> None:
    disk = Disk()
    database = SqliteDatabase.open(tmp_path / "keryx.db", vfs=disk.name)
    talk = await Talk.begin(database, ids)
    rehearsed = disk.count(kind)
    await scenario(talk, await talk.session(), lambda _text: None)
    expected: dict[SessionId, list[str]] = {}
    refusals = set()
    for number in range(1, disk.count(kind) - rehearsed + 2):
        session_id, kept = await talk.session(), list[str]()
        disk.break_at(number, error, kind=kind)
        refused = await scenario(talk, session_id, kept.append)
        disk.heal()
        assert len(kept) + len(refused) == 5
        refusals.add(len(refused))
        assert await talk.texts(session_id) == kept
        kept.append("space is back")
        await talk.append(session_id, "user", kept[-1])
        expected[session_id] = kept
    assert {0, 1, 5} <= refusals  # the faults struck early, late and not at all
    await database.close()

    reopened = SqliteDatabase.open(tmp_path / "keryx.db")
    talk = await Talk.begin(reopened, ids)
    for session_id, kept in expected.items():
        assert await talk.texts(session_id) == kept
    await reopened.close()


async def test_after_a_failed_commit_each_function_succeeds_or_fails_by_itself(
    disk: Disk, talk: Talk
) -> None:
    session_id = await talk.session()
    begun, go_on = threading.Event(), threading.Event()

    def hold(_tx: Tx) -> None:
        begun.set()
        assert go_on.wait(30)

    holding = asyncio.create_task(talk.database.write(hold))
    assert await asyncio.to_thread(begun.wait, 30)
    disk.break_at(1, apsw.FullError, once=True)
    together = asyncio.gather(
        talk.append(session_id, "user", "one"),
        talk.database.write(lambda _tx: 1 // 0),
        talk.append(session_id, "user", "two"),
        return_exceptions=True,
    )
    await asyncio.sleep(0)
    go_on.set()
    await holding
    one, failed, two = await together
    assert disk.failed.is_set()
    assert (one, two) == (1, 2)
    assert isinstance(failed, ZeroDivisionError)
    assert await talk.texts(session_id) == ["one", "two"]


async def test_after_a_failed_commit_a_function_that_fails_is_alone_with_its_error(
    path: Path, disk: Disk
) -> None:
    """The clock stands still, so that all functions are in one batch, however slow the machine is."""
    connection = apsw.Connection(str(path), vfs=disk.name)
    set_up(connection)
    connection.execute("CREATE TABLE numbers (number INTEGER)")
    writer = Writer(connection, FakeClock(), name="test-writer")

    def insert(number: int) -> int:
        connection.execute("INSERT INTO numbers VALUES (?)", (10 // number,))
        return number

    disk.break_at(1, apsw.FullError, once=True)
    jobs = [writer.run(partial(insert, number)) for number in (1, 0, 2)]
    one, failed, two = await asyncio.gather(*jobs, return_exceptions=True)
    assert disk.failed.is_set()
    assert (one, type(failed), two) == (1, ZeroDivisionError, 2)
    await asyncio.to_thread(writer.stop)
    assert connection.execute("SELECT number FROM numbers").fetchall() == [(10,), (5,)]
    connection.close()


@pytest.mark.parametrize("survivors", ["only what was synced", "some of the rest"])
async def test_a_power_cut_loses_no_acknowledged_write(
    tmp_path: Path, disk: Disk, talk: Talk, survivors: str
) -> None:
    session_id = await talk.session()
    disk.mark("session")
    for _ in range(3):
        await scenario(talk, session_id, disk.mark)
    # Enough to copy the log into the file and restart the log.
    for number in range(12):
        await talk.append(session_id, "user", f"{number} {LONG * 40}")
        disk.mark(f"{number} {LONG * 40}")
    await scenario(talk, session_id, disk.mark)
    log = disk.log.copy()
    assert any(op.kind == "write" and op.file == "keryx.db" and op.offset for op in log)

    chance = random.Random(1)
    keep = (lambda: False) if survivors.startswith("only") else lambda: chance.random() < 0.5
    begun = next(place for place, op in enumerate(log) if op.file == "session")
    cuts = set(chance.sample(range(begun + 1, len(log)), 20)) | {len(log) - 1}
    for cut, files in images(log, cuts, keep):
        acknowledged = [op.file for op in log[begun + 1 : cut] if op.kind == "mark"]
        texts = await _texts_after(files, tmp_path / f"cut-{cut}", session_id)
        assert texts[: len(acknowledged)] == acknowledged
        assert len(texts) <= len(acknowledged) + 3  # unfinished writes may be stored, as whole messages


def _lay_out(files: dict[str, bytes], folder: Path) -> None:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)


async def _texts_after(files: dict[str, bytes], folder: Path, session_id: SessionId) -> list[str]:
    _lay_out(files, folder)
    database = SqliteDatabase.open(folder / "keryx.db")

    def look(tx: ReadTx) -> list[str]:
        return [message.text for message in shown_messages(tx, session_id)]

    texts = await database.read(look)
    await database.close()
    connection = apsw.Connection(str(folder / "keryx.db"))
    assert connection.pragma("integrity_check") == "ok"
    connection.close()
    return texts


async def test_the_log_is_copied_again_when_the_disk_has_space(disk: Disk, talk: Talk) -> None:
    session_id = await talk.session()
    disk.break_at(1, apsw.FullError, file="keryx.db")
    number = 0
    while not disk.failed.is_set():
        await talk.append(session_id, "user", f"{number} {LONG * 40}")
        number += 1
    disk.heal()
    copied = disk.count("write", file="keryx.db")
    while disk.count("write", file="keryx.db") == copied:
        await talk.append(session_id, "user", f"{number} {LONG * 40}")
        number += 1
    assert len(await talk.texts(session_id)) == number


async def test_a_failed_read_raises_and_the_next_read_works(disk: Disk, talk: Talk) -> None:
    session_id = await talk.session(*(f"{n} {LONG}" for n in range(20)))
    await talk.record(session_id)
    disk.break_at(1, apsw.IOError, kind="read")
    with pytest.raises(StoreUnavailable, match="could not be read"):
        await asyncio.gather(*(talk.texts(session_id) for _ in range(8)))
    disk.heal()
    assert len(await talk.texts(session_id)) == 20


async def test_a_disk_that_fails_while_opening_leaves_a_store_that_opens_later(
    tmp_path: Path, disk: Disk, ids: Ids
) -> None:
    failures = 0
    for number in count(1, 7):
        path = tmp_path / f"{number}.db"
        disk.break_at(number, apsw.FullError, once=True)
        try:
            database = SqliteDatabase.open(path, vfs=disk.name)
        except StoreUnavailable:
            failures += 1
            database = SqliteDatabase.open(path, vfs=disk.name)
        opened = not disk.failed.is_set()
        disk.heal()
        talk = await Talk.begin(database, ids)
        assert await talk.texts(await talk.session("all is well")) == ["all is well"]
        await database.close()
        if opened:
            break
    assert failures > 3
