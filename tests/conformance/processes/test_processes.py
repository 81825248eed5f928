"""Background processes: recorded before the start, ended once, with one notice each."""

from typing import Any

import pytest

from keryx.clock import HOUR
from keryx.core.conversations.rules.message import text_of
from keryx.core.conversations.rules.source import LOCAL_CLI
from keryx.core.conversations.tables import feed
from keryx.core.conversations.transactions.open_session import open_session
from keryx.core.people.tables import people
from keryx.core.processes import tables as processes
from keryx.core.processes.rules import NoticePolicy
from keryx.core.processes.tables import Process
from keryx.core.processes.transactions.record_process import (
    AlreadyReported,
    NewProcess,
    ProcessAlreadyEnded,
    Recorded,
    record_end,
    record_pattern,
    record_progress,
    record_spawned,
    record_started,
)
from keryx.core.processes.views import find_in_folder
from keryx.core.turns.tables import inbox
from keryx.errors import InvalidValue, NotFound
from keryx.ids import Ids
from keryx.store.database import Database
from keryx.testing.clock import FakeClock


async def started(database: Database, ids: Ids, **fields: Any) -> Process:
    owner = await database.write(people.ensure_owner)
    session_id = await database.write(lambda tx: open_session(tx, ids, source=LOCAL_CLI, owner=owner))
    new = NewProcess(**({"command": "make test", "workspace": "/srv/work"} | fields))
    process_id = await database.write(
        lambda tx: record_started(tx, new, session_id=session_id, person_id=owner.id)
    )
    return await look(database, process_id)


async def look(database: Database, process_id: int) -> Process:
    return await database.read(lambda tx: processes.get_process(tx, process_id))


async def heard(database: Database, recorded: object) -> inbox.InboxItem:
    assert isinstance(recorded, Recorded)
    inbox_id = recorded.inbox_id
    assert inbox_id is not None
    item = await database.read(lambda tx: inbox.find_item(tx, inbox_id))
    assert item is not None
    return item


async def test_a_process_is_recorded_before_it_runs_and_pins_its_session_for_a_day(
    database: Database, ids: Ids, clock: FakeClock
) -> None:
    notice = NoticePolicy(on_exit=False, patterns=("ERROR", "done"), every_minutes=5)
    process = await started(database, ids, notice=notice, has_pty=True, backend="docker")
    assert (process.state, process.pid, process.command, process.workspace) == (
        "running",
        None,
        "make test",
        "/srv/work",
    )
    assert (process.notice, process.has_pty, process.backend) == (notice, 1, "docker")
    assert process.pins_until_at == clock.now() + 24 * HOUR
    assert await database.read(lambda tx: processes.session_pinned(tx, process.session_id))
    clock.advance(24 * HOUR)
    assert not await database.read(lambda tx: processes.session_pinned(tx, process.session_id))


async def test_a_process_need_not_pin_its_session(database: Database, ids: Ids) -> None:
    process = await started(database, ids, pin_hours=0)
    assert not await database.read(lambda tx: processes.session_pinned(tx, process.session_id))


@pytest.mark.parametrize("wrong", [{"command": " "}, {"pin_hours": -1}])
def test_an_invalid_process_cannot_be_constructed(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        NewProcess(**({"command": "make", "workspace": None} | wrong))


async def test_a_process_is_found_by_its_folder(database: Database, ids: Ids) -> None:
    process = await started(database, ids, host="alpha", folder="f1")
    assert (process.host, process.folder) == ("alpha", "f1")
    assert await database.read(lambda tx: find_in_folder(tx, "f1")) == process
    assert await database.read(lambda tx: find_in_folder(tx, "f2")) is None


async def test_a_process_in_an_invisible_session_is_refused(database: Database, ids: Ids) -> None:
    process = await started(database, ids)
    other = await database.write(lambda tx: people.add_person(tx, name="Ana", role="member"))
    new = NewProcess(command="make", workspace=None)
    with pytest.raises(NotFound):
        await database.write(
            lambda tx: record_started(tx, new, session_id=process.session_id, person_id=other.id)
        )


async def test_a_process_is_identified_by_pid_start_time_and_boot(database: Database, ids: Ids) -> None:
    process = await started(database, ids)

    def spawned(tx: Any) -> object:
        return record_spawned(tx, process.id, pid=4711, pid_started_at=99, machine_boot_id="boot")

    assert await database.write(spawned) == Recorded()
    after = await look(database, process.id)
    assert (after.pid, after.pid_started_at, after.boot_id) == (4711, 99, "boot")
    await database.write(lambda tx: record_end(tx, process.id, "killed"))
    assert isinstance(await database.write(spawned), ProcessAlreadyEnded)


async def test_a_session_gets_one_notice_of_an_exit(database: Database, ids: Ids, clock: FakeClock) -> None:
    process = await started(database, ids)

    def exited(tx: Any) -> object:
        return record_end(tx, process.id, "exited", exit_code=2, output_bytes=10, tail='say "no"\n')

    item = await heard(database, await database.write(exited))
    assert (item.kind, item.platform, item.ref, item.session_id) == (
        "process",
        "",
        f"process:{process.id}:exit",
        process.session_id,
    )
    assert text_of(item.parts) == (
        f'Background process {process.id} ("make test") exited with code 2. '
        r'The end of its output: "say \"no\"\n"'
    )
    after = await look(database, process.id)
    assert (after.state, after.exit_code, after.output_bytes, after.ended_at) == (
        "exited",
        2,
        10,
        clock.now(),
    )
    assert not await database.read(lambda tx: processes.session_pinned(tx, process.session_id))

    assert await database.write(exited) == ProcessAlreadyEnded(process=after)
    assert await database.read(lambda tx: inbox.count_open(tx, process.session_id)) == 1
    events = await database.read(
        lambda tx: feed.list_of_session(tx, session_id=process.session_id, after_number=0, limit=50)
    )
    assert [(event.kind, event.subject) for event in events[-3:]] == [
        ("process", process.id),
        ("process", process.id),
        ("inbox", item.id),
    ]


async def test_a_lost_process_makes_a_notice_and_a_killed_or_quiet_one_does_not(
    database: Database, ids: Ids
) -> None:
    lost = await started(database, ids)
    item = await heard(database, await database.write(lambda tx: record_end(tx, lost.id, "lost")))
    assert text_of(item.parts).endswith("was lost: it is unknown whether it still runs.")
    killed = await started(database, ids)
    assert await database.write(lambda tx: record_end(tx, killed.id, "killed")) == Recorded()
    quiet = await started(database, ids, notice=NoticePolicy(on_exit=False))
    told = await database.write(lambda tx: record_end(tx, quiet.id, "exited", exit_code=0))
    assert told == Recorded()


async def test_an_exit_code_belongs_to_an_exit(database: Database, ids: Ids) -> None:
    process = await started(database, ids)
    with pytest.raises(InvalidValue):
        await database.write(lambda tx: record_end(tx, process.id, "exited"))
    with pytest.raises(InvalidValue):
        await database.write(lambda tx: record_end(tx, process.id, "lost", exit_code=1))


async def test_a_watched_pattern_makes_one_notice(database: Database, ids: Ids) -> None:
    process = await started(database, ids, notice=NoticePolicy(patterns=("ERROR", "done")))

    async def found(pattern: str) -> object:
        return await database.write(
            lambda tx: record_pattern(tx, process.id, pattern=pattern, line=f"{pattern}: disk")
        )

    item = await heard(database, await found("ERROR"))
    assert 'wrote a line with "ERROR"' in text_of(item.parts)
    assert await found("ERROR") == AlreadyReported(inbox_id=item.id)
    assert (await heard(database, await found("done"))).id != item.id


async def test_regular_notices_come_while_the_process_runs(database: Database, ids: Ids) -> None:
    process = await started(database, ids)

    def progress(tx: Any) -> object:
        return record_progress(tx, process.id, number=1, tail="")

    item = await heard(database, await database.write(progress))
    assert text_of(item.parts).endswith("is still running.")
    assert await database.write(progress) == AlreadyReported(inbox_id=item.id)
    await database.write(lambda tx: record_end(tx, process.id, "killed"))
    assert isinstance(await database.write(progress), ProcessAlreadyEnded)


async def test_an_unrecorded_process_is_not_found(database: Database) -> None:
    with pytest.raises(NotFound):
        await database.write(lambda tx: record_end(tx, 99, "killed"))
