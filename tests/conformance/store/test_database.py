"""What both databases promise to every function they run."""

import asyncio
import threading
from collections.abc import Callable
from itertools import count
from random import Random
from string import ascii_letters

import pytest

from keryx.clock import SystemClock
from keryx.core.conversations.tables import feed
from keryx.core.people.tables import people
from keryx.core.turns.rules.lease import LEASE_TIME
from keryx.errors import InvalidValue, NotFound, StoreError, StoreUnavailable
from keryx.ids import Ids
from keryx.store.database import Database, ReadTx, Tx
from keryx.store.opening import open_database
from keryx.testing.clock import FakeClock
from tests.conformance.stage import statement
from tests.conformance.talk import Talk

LOOK_SECONDS = 0.1
"""How often a store looks for commits of others, at most."""
PATIENCE_SECONDS = 30


class PlantedFault(Exception):
    pass


def add(tx: Tx, name: str) -> int:
    return people.add_person(tx, name=name, role="guest").id


def is_there(tx: ReadTx, person_id: int) -> bool:
    return tx.row("people.get", person_id=person_id) is not None


class Gate:
    """Blocks a function inside the store until the test releases it."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._opened = threading.Event()

    def hold(self, _tx: ReadTx) -> None:
        self._reached.set()
        assert self._opened.wait(PATIENCE_SECONDS)

    async def reached(self) -> None:
        assert await asyncio.to_thread(self._reached.wait, PATIENCE_SECONDS)

    def open(self) -> None:
        self._opened.set()


async def test_a_failing_function_rolls_back_only_its_own_work(database: Database) -> None:
    gate = Gate()
    added: list[int] = []

    def fail(tx: Tx) -> None:
        added.append(add(tx, "taken back"))
        raise PlantedFault

    holding = asyncio.create_task(database.write(gate.hold))
    await gate.reached()
    together = [
        asyncio.create_task(database.write(work))
        for work in (lambda tx: add(tx, "before"), fail, lambda tx: add(tx, "after"))
    ]
    await asyncio.sleep(0)
    gate.open()
    await holding
    before, failed, after = await asyncio.gather(*together, return_exceptions=True)
    assert isinstance(failed, PlantedFault)
    assert isinstance(before, int)
    assert isinstance(after, int)
    assert await database.read(lambda tx: is_there(tx, before))
    assert await database.read(lambda tx: is_there(tx, after))
    names = await database.read(lambda tx: [tx.row("people.get", person_id=n) for n in range(1, 10)])
    assert sorted(row[1] for row in names if row) == ["after", "before"]


@pytest.mark.parametrize("fails", [False, True])
async def test_a_cancelled_task_first_waits_for_the_outcome(database: Database, *, fails: bool) -> None:
    gate = Gate()
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: complaints.append(context))

    def work(tx: Tx) -> None:
        add(tx, "there")
        gate.hold(tx)
        if fails:
            raise PlantedFault

    task = asyncio.create_task(database.write(work))
    await gate.reached()
    for _ in range(2):
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=0.01)
        assert not done
    gate.open()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await database.read(lambda tx: is_there(tx, 1)) is not fails
    assert complaints == []


async def test_a_closed_store_refuses_everything(database: Database) -> None:
    await database.close()
    await database.close()
    refused: list[Callable[[], object]] = [
        lambda: database.write(lambda tx: add(tx, "late")),
        lambda: database.read(lambda tx: tx.now),
        lambda: database.write_index(lambda tx: tx.now),
        database.discard_index,
        lambda: database.changed(since=database.change_no, timeout_seconds=1),
    ]
    for call in refused:
        with pytest.raises(StoreUnavailable, match="was closed; open it again"):
            await call()  # type: ignore[misc]


async def test_closing_finishes_begun_work_and_wakes_waiting_tasks(store_address: str) -> None:
    database = open_database(store_address)
    gate = Gate()

    def hold_and_add(tx: Tx) -> int:
        gate.hold(tx)
        return add(tx, "kept")

    writing = asyncio.create_task(database.write(hold_and_add))
    reading = asyncio.create_task(database.read(gate.hold))
    waiting = [
        asyncio.create_task(database.changed(since=database.change_no, timeout_seconds=PATIENCE_SECONDS))
        for _ in range(2)
    ]
    await gate.reached()
    closing = [asyncio.create_task(database.close()) for _ in range(2)]
    await asyncio.sleep(0)
    gate.open()
    await asyncio.gather(reading, *waiting, *closing)
    person_id = await writing
    again = open_database(store_address)
    assert await again.read(lambda tx: is_there(tx, person_id))
    await again.close()


async def test_a_read_sees_one_snapshot_while_writes_continue(database: Database) -> None:
    gate = Gate()

    def look_twice(tx: ReadTx) -> tuple[bool, bool]:
        before = is_there(tx, 1)
        gate.hold(tx)
        return before, is_there(tx, 1)

    reading = asyncio.create_task(database.read(look_twice))
    await gate.reached()
    assert await database.write(lambda tx: add(tx, "new")) == 1
    gate.open()
    assert await reading == (False, False)
    assert await database.read(lambda tx: is_there(tx, 1))


async def test_a_read_cannot_write(database: Database) -> None:
    with pytest.raises(StoreError, match=r"read-?only"):
        await database.read(lambda tx: tx.rows("people.add", name="x", role="guest"))


async def test_a_commit_wakes_every_waiting_task(database: Database) -> None:
    since = database.change_no
    waiting = [
        asyncio.create_task(database.changed(since=since, timeout_seconds=PATIENCE_SECONDS)) for _ in range(3)
    ]
    await database.write(lambda tx: add(tx, "news"))
    assert await asyncio.gather(*waiting) == [True, True, True]
    assert database.change_no > since


async def test_a_commit_of_this_process_is_noticed_once(database: Database, ids: Ids) -> None:
    talk = await Talk.begin(database, ids)
    session_id = await talk.session()

    async def listen() -> None:
        while True:
            await database.changed(since=database.change_no, timeout_seconds=PATIENCE_SECONDS)

    loop = asyncio.get_running_loop()
    listening = asyncio.create_task(listen())
    since, began_at = database.change_no, loop.time()
    for _ in range(60):
        await database.write(lambda tx: feed.add_event(tx, session_id, "session.changed"))
        # Whoever listens waits again, and the store may look for commits of others.
        await asyncio.sleep(0.01)
    told, looks = database.change_no - since, (loop.time() - began_at) / LOOK_SECONDS
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    assert told <= 60 + looks + 5


async def test_a_commit_between_a_query_and_waiting_is_not_missed(database: Database) -> None:
    since = database.change_no
    await database.write(lambda tx: add(tx, "news"))
    assert await database.changed(since=since, timeout_seconds=0)


async def test_a_commit_of_another_connection_is_noticed(
    database: Database, store_address: str, ids: Ids
) -> None:
    talk = await Talk.begin(database, ids)
    session_id = await talk.session()
    await _quiet(database)
    other = open_database(store_address)
    waiting = asyncio.create_task(
        database.changed(since=database.change_no, timeout_seconds=PATIENCE_SECONDS)
    )
    await asyncio.sleep(0)
    await other.write(lambda tx: feed.add_event(tx, session_id, "session.changed"))
    assert await waiting
    await other.close()


async def test_without_commits_nothing_is_new(database: Database) -> None:
    await database.write(lambda tx: add(tx, "old"))
    await _quiet(database)


async def _quiet(database: Database) -> None:
    """Wait until the store reports no commit; a few false alarms are allowed."""
    for _ in range(5):
        if not await database.changed(since=database.change_no, timeout_seconds=0.25):
            return
    pytest.fail("The store keeps saying that something is new.")


async def test_the_index_is_written_separately_and_can_be_discarded(database: Database, ids: Ids) -> None:
    talk = await Talk.begin(database, ids)
    session_id = await talk.session("kept")

    def begin(tx: Tx) -> int:
        tx.run("search_state.begin", format=7)
        return len(feed.list_of_session(tx, session_id=session_id, after_number=0, limit=9))

    assert await database.write_index(begin) == 2
    assert await database.read(lambda tx: tx.row("search_state.find")) == (7, 0, 0)
    with pytest.raises(PlantedFault):
        await database.write_index(_fail_after_clearing)
    assert await database.read(lambda tx: tx.row("search_state.find")) == (7, 0, 0)
    await database.discard_index()
    assert await database.read(lambda tx: tx.row("search_state.find")) is None
    assert await database.write_index(begin) == 2
    assert await talk.texts(session_id) == ["kept"]


def _fail_after_clearing(tx: Tx) -> None:
    tx.run("search_state.clear")
    raise PlantedFault


async def test_index_writes_and_discards_wait_for_each_other(database: Database) -> None:
    gate = Gate()
    holding = asyncio.create_task(database.write_index(gate.hold))
    await gate.reached()
    together = asyncio.gather(
        database.write_index(lambda tx: tx.run("search_state.begin", format=1)),
        database.discard_index(),
        database.discard_index(),
        database.write_index(lambda tx: tx.run("search_state.begin", format=1)),
    )
    await asyncio.sleep(0)
    gate.open()
    await holding
    await together
    # On PostgreSQL they may overtake each other, but each is whole.
    assert await database.read(lambda tx: tx.row("search_state.find")) in ((1, 0, 0), None)
    await database.discard_index()
    await database.write_index(lambda tx: tx.run("search_state.begin", format=2))
    assert await database.read(lambda tx: tx.row("search_state.find")) == (2, 0, 0)


async def test_a_fault_before_any_statement_leaves_nothing(store_address: str, ids: Ids) -> None:
    seen: list[str] = []

    def hook(name: str) -> None:
        seen.append(name)
        if len(seen) == fault_at:
            raise PlantedFault

    fault_at = 0
    database = open_database(store_address, clock=FakeClock(), hook=hook)
    talk = await Talk.begin(database, ids)
    session_id = await talk.session("first")
    statements: list[str] = []
    for fault_at in count(1):
        seen.clear()
        try:
            await talk.append(session_id, "user", "second")
        except PlantedFault:
            statements = seen.copy()
            seen.extend([""] * fault_at)  # what follows runs unharmed
            assert await talk.texts(session_id) == ["first"]
            assert await talk.facts(session_id) == ["session.opened", "message"]
        else:
            break
    fault_at = 0
    assert len(statements) >= 3
    assert await talk.texts(session_id) == ["first", "second"]
    await database.close()


async def test_times_are_the_store_s_and_not_the_caller_s(
    database: Database, clock: FakeClock, ids: Ids
) -> None:
    talk = await Talk.begin(database, ids)
    session_id = await talk.session()

    def forge(tx: Tx) -> tuple[int, int]:
        assert tx.now == clock.now()
        assert tx.lease_now == clock.monotonic()
        row = tx.row("feed.next_session_no", session_id=session_id)
        assert row is not None
        tx.run("feed.add", session_id=session_id, number=row[0], kind="message", subject=None, now=1)
        take = {"session_id": session_id, "lease_time": LEASE_TIME, "lease_now": 5}
        taken = tx.row("leases.take", holder="me", **take)
        assert taken is not None
        assert tx.row("leases.take", holder="you", boot_id="another boot", **take) is None
        event = feed.list_of_session(tx, session_id=session_id, after_number=0, limit=9)[-1]
        return event.at, taken[3]

    assert await database.write(forge) == (clock.now(), clock.monotonic() + LEASE_TIME)


async def test_without_a_given_clock_times_are_those_of_the_database(store_address: str) -> None:
    database = open_database(store_address)
    here = SystemClock()
    for run in (database.write, database.read):
        before = here.now()
        now, lease_now, again = await run(lambda tx: (tx.now, tx.lease_now, tx.now))
        assert before <= now <= here.now()
        assert again == now
        assert lease_now == now if database.dialect == "postgres" else lease_now <= here.monotonic()
    assert await database.read(lambda tx: tx.boot_id) == (
        "" if database.dialect == "postgres" else here.boot_id()
    )
    await database.close()


async def test_many_rows_are_written_by_one_statement(database: Database) -> None:
    def add_many(tx: Tx, names: list[str]) -> None:
        tx.run_many("people.ensure_audience", [{"key": name} for name in names])

    await database.write(lambda tx: add_many(tx, []))
    await database.write(lambda tx: add_many(tx, ["a", "b", "c"]))
    found = await database.read(lambda tx: [tx.row("people.find_audience", key=key) for key in "abcd"])
    assert [row is not None for row in found] == [True, True, True, False]


async def test_a_statement_that_the_database_refuses_says_so(database: Database) -> None:
    with pytest.raises(StoreError, match="refused a statement"):
        await database.write(lambda tx: tx.row("people.add", name="x", role="emperor"))


async def test_a_value_that_no_database_can_hold_is_refused_and_nothing_is_written(
    database: Database,
) -> None:
    sizes = {"sqlite": "SELECT zeroblob(2147483647)", "postgres": "SELECT CAST('a size' AS BIGINT)"}

    def add_one_and_ask(tx: Tx) -> None:
        tx.run("people.ensure_audience", key="a")
        tx.row("test.size")

    with statement("test.size", sizes[database.dialect]), pytest.raises(InvalidValue, match="cannot hold"):
        await database.write(add_one_and_ask)
    assert await database.read(lambda tx: tx.row("people.find_audience", key="a")) is None


async def test_a_text_that_an_index_cannot_hold_is_not_retried(postgres_url: str) -> None:
    database = open_database(postgres_url)
    # Random, because PostgreSQL would press what repeats itself until it fits.
    key = "".join(Random(7).choices(ascii_letters, k=9_000))
    with pytest.raises(InvalidValue, match="cannot hold"):
        await database.write(lambda tx: tx.run("people.ensure_audience", key=key))
    await database.close()


async def test_errors_of_keryx_are_raised_unchanged(database: Database) -> None:
    with pytest.raises(NotFound, match="no person 77"):
        await database.write(lambda tx: people.get_person(tx, 77))
    with pytest.raises(NotFound, match="no person 77"):
        await database.read(lambda tx: people.get_person(tx, 77))


async def test_a_stop_iteration_does_not_leave_the_caller_waiting(database: Database) -> None:
    def careless(tx: ReadTx) -> int:
        return next(iter(()))

    for run in (database.write, database.read, database.write_index):
        with pytest.raises(RuntimeError, match="StopIteration"):
            await asyncio.wait_for(run(careless), PATIENCE_SECONDS)


async def test_several_event_loops_write_at_once(database: Database, ids: Ids) -> None:
    talk = await Talk.begin(database, ids)
    session_id = await talk.session()

    async def append_many(name: str) -> list[int]:
        return list(await asyncio.gather(*(talk.append(session_id, "user", f"{name}{n}") for n in range(10))))

    loops = [asyncio.to_thread(asyncio.run, append_many(name)) for name in "abcd"]
    places = await asyncio.gather(*loops)
    assert sorted(place for some in places for place in some) == list(range(1, 41))
    assert len(set(await talk.texts(session_id))) == 40


async def test_a_closed_loop_is_not_called(database: Database) -> None:
    gate = Gate()

    def begin_and_leave() -> asyncio.Task[None]:
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda _loop, _context: None)
        task = loop.create_task(database.write(gate.hold))
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        return task

    task = await asyncio.to_thread(begin_and_leave)
    await gate.reached()
    gate.open()
    assert await database.write(lambda tx: add(tx, "goes on")) == 1
    assert not task.done()


async def test_a_long_read_does_not_block_the_event_loop(database: Database, ids: Ids) -> None:
    talk = await Talk.begin(database, ids)
    session_id = await talk.session(*(f"message {n}" for n in range(50)))
    clock = SystemClock()

    def read_long(tx: ReadTx) -> None:
        until = clock.monotonic() + 200_000
        while clock.monotonic() < until:
            feed.list_of_session(tx, session_id=session_id, after_number=0, limit=1_000)

    async def longest_gap() -> int:
        reading = asyncio.create_task(database.read(read_long))
        worst, last = 0, clock.monotonic()
        while not reading.done():
            await asyncio.sleep(0.001)
            last, before = clock.monotonic(), last
            worst = max(worst, last - before)
        return worst

    # The best of three: the machine may be busy with others' work, a blocking call would show each time.
    assert min([await longest_gap() for _ in range(3)]) < 50_000
