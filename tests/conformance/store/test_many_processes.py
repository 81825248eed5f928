"""Several processes, threads and transactions on one store: nothing happens twice, nothing is missed, none starves."""

import asyncio
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from keryx.core.conversations.rules.event import START, Event, Position
from keryx.core.conversations.rules.message import TextPart
from keryx.core.conversations.rules.source import LOCAL_CLI
from keryx.core.conversations.tables import feed
from keryx.core.conversations.transactions.open_session import open_session
from keryx.core.people.tables import people
from keryx.core.turns.tables import inbox
from keryx.ids import Ids
from keryx.store.database import Database, Tx
from keryx.store.opening import open_database
from keryx.store.postgres import PostgresDatabase
from tests.conformance.talk import Talk
from tests.conformance.worker import claim

ROOT = Path(__file__).parents[3]
WAIT_MAX_MICROS = 1_000_000


async def in_process(*arguments: str) -> Any:
    """Run the worker in a process of its own and return its answer."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.conformance.worker",
        *arguments,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    return json.loads(output)


@pytest.mark.parametrize("seconds", [10, pytest.param(180, marks=pytest.mark.slow)])
async def test_two_processes_append_to_one_file_without_an_error_or_a_long_wait(
    tmp_path: Path, ids: Ids, seconds: int
) -> None:
    address = str(tmp_path / "keryx.db")
    database = open_database(address)
    talk = await Talk.begin(database, ids)
    session_id = await talk.session()
    workers = await asyncio.gather(
        *(in_process("append", address, session_id, str(seconds)) for _ in range(2))
    )
    assert max(worker["worst_micros"] for worker in workers) <= WAIT_MAX_MICROS
    assert min(worker["appended"] for worker in workers) >= 10 * seconds
    assert len(await talk.texts(session_id)) == sum(worker["appended"] for worker in workers)
    await database.close()


async def fill_inbox(database: Database, ids: Ids, items: int) -> set[int]:
    """Add one waiting item to each of some sessions."""

    def fill(tx: Tx) -> set[int]:
        owner = people.ensure_owner(tx)
        return {
            inbox.add_item(
                tx,
                session_id=open_session(tx, ids, source=LOCAL_CLI, owner=owner),
                kind="message",
                source=LOCAL_CLI,
                ref=f"ref {number}",
                parts=(TextPart(text="do it"),),
                person_id=owner.id,
            )
            for number in range(items)
        }

    return await database.write(fill)


async def test_racing_threads_claim_every_item_once(store_address: str, ids: Ids) -> None:
    databases = [open_database(store_address) for _ in range(2)]
    waiting = await fill_inbox(databases[0], ids, 40)
    loops = [
        asyncio.to_thread(asyncio.run, claim(database, f"holder {number} {place}"))
        for place, database in enumerate(databases)
        for number in range(3)
    ]
    claimed = [item for some in await asyncio.gather(*loops) for item in some]
    assert sorted(claimed) == sorted(waiting)
    for database in databases:
        await database.close()


async def test_racing_processes_claim_every_item_once(store_address: str, ids: Ids) -> None:
    database = open_database(store_address)
    waiting = await fill_inbox(database, ids, 40)
    await database.close()
    answers = await asyncio.gather(
        *(in_process("claim", store_address, f"holder {number}") for number in range(3))
    )
    assert sorted(item for some in answers for item in some) == sorted(waiting)


async def test_a_commit_of_another_process_is_noticed(store_address: str, ids: Ids) -> None:
    database = open_database(store_address)
    talk = await Talk.begin(database, ids)
    session_id = await talk.session()
    while await database.changed(since=database.change_no, timeout_seconds=0.25):
        continue
    waiting = asyncio.create_task(database.changed(since=database.change_no, timeout_seconds=30))
    assert await in_process("note", store_address, session_id) == 2
    assert await waiting
    assert await talk.facts(session_id) == ["session.opened", "session.changed"]
    await database.close()


async def test_a_feed_reader_misses_neither_of_two_transactions_that_commit_in_reverse(
    postgres_url: str, ids: Ids
) -> None:
    database = PostgresDatabase.open(postgres_url)
    talk = await Talk.begin(database, ids)
    early, late = await talk.session(), await talk.session()
    begun, go_on = threading.Event(), threading.Event()

    def slow(tx: Tx) -> None:
        feed.add_event(tx, early, "session.changed")
        begun.set()
        assert go_on.wait(30)

    async def new_facts(after: Position) -> list[Event]:
        return await database.read(
            lambda tx: feed.list_after(tx, after=after, person_id=talk.owner.id, limit=100)
        )

    seen = await new_facts(START)
    position = seen[-1].position
    first = asyncio.create_task(database.write(slow))
    assert await asyncio.to_thread(begun.wait, 30)
    await database.write(lambda tx: feed.add_event(tx, late, "session.changed"))
    # The second has committed. A reader that went on past it could never come back for the first.
    assert await new_facts(position) == []
    assert await database.read(feed.end) == position
    waiting = asyncio.create_task(database.changed(since=database.change_no, timeout_seconds=30))
    go_on.set()
    await first
    assert await waiting
    assert [event.session_id for event in await new_facts(position)] == [early, late]
    await database.close()


async def test_a_fact_held_back_by_a_transaction_that_fails_is_noticed(postgres_url: str, ids: Ids) -> None:
    database, other = PostgresDatabase.open(postgres_url), PostgresDatabase.open(postgres_url)
    talk = await Talk.begin(database, ids)
    session_id = await talk.session()
    begun, go_on = threading.Event(), threading.Event()

    def fail(_tx: Tx) -> None:
        begun.set()
        assert go_on.wait(30)
        raise ZeroDivisionError

    failing = asyncio.create_task(other.write(fail))
    assert await asyncio.to_thread(begun.wait, 30)
    await other.write(lambda tx: feed.add_event(tx, session_id, "session.changed"))
    while await database.changed(since=database.change_no, timeout_seconds=0.25):
        continue
    waiting = asyncio.create_task(database.changed(since=database.change_no, timeout_seconds=30))
    go_on.set()
    with pytest.raises(ZeroDivisionError):
        await failing
    assert await waiting
    await database.close()
    await other.close()
