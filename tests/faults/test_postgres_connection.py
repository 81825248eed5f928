"""With a dead connection, a commit without an answer or a crashed server, each function takes effect once."""

import asyncio
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest

from keryx.core.conversations.rules.event import START
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.tables import feed
from keryx.core.people.tables import people
from keryx.errors import StoreError, StoreUnavailable
from keryx.ids import Ids
from keryx.store.database import RaceLost, ReadTx, Tx
from keryx.store.postgres import PostgresDatabase
from keryx.store.postgres_tx import PostgresTx
from keryx.testing.postgres import PrivateServer
from tests.conformance.talk import Talk
from tests.faults.server import Cut, Line, line_to, pg_ctl

PATIENCE_SECONDS = 30


class PlantedFault(Exception):
    pass


@pytest.fixture
async def database(postgres_url: str) -> AsyncIterator[PostgresDatabase]:
    database = PostgresDatabase.open(postgres_url)
    yield database
    await database.close()


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Return a folder with a short path, which leaves room for a socket's name."""
    with tempfile.TemporaryDirectory(prefix="keryx-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def line(postgres_url: str, short_folder: Path) -> Iterator[Line]:
    with line_to(postgres_url, short_folder) as line:
        yield line


@pytest.fixture
async def far(line: Line) -> AsyncIterator[PostgresDatabase]:
    """Return a store behind a line that a test can cut."""
    database = PostgresDatabase.open(line.url, patience_seconds=PATIENCE_SECONDS)
    yield database
    await database.close()


def add(tx: Tx, name: str) -> int:
    return people.add_person(tx, name=name, role="guest").id


def names(tx: ReadTx) -> list[str]:
    rows = (tx.row("people.get", person_id=person_id) for person_id in range(1, 40))
    return [row[1] for row in rows if row]


def kill_backends_in_a_transaction(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()"
        )
        while admin.execute(
            "SELECT 1 FROM pg_stat_activity "
            "WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()"
        ).fetchone():
            continue


@pytest.fixture
def kill_once(postgres_url: str) -> Callable[[], None]:
    calls = count(1)

    def kill() -> None:
        if next(calls) == 1:
            kill_backends_in_a_transaction(postgres_url)

    return kill


async def test_a_connection_lost_before_commit_reruns_the_whole_function(
    database: PostgresDatabase, kill_once: Callable[[], None]
) -> None:
    runs = count(1)
    latest = 0

    def work(tx: Tx) -> int:
        nonlocal latest
        latest = next(runs)
        add(tx, "first")
        kill_once()
        add(tx, "second")
        return latest

    assert await database.write(work) == 2
    assert await database.read(names) == ["first", "second"]


async def test_a_connection_lost_right_before_commit_reruns_the_whole_function(
    database: PostgresDatabase, kill_once: Callable[[], None]
) -> None:
    def work(tx: Tx) -> None:
        add(tx, "once")
        kill_once()

    await database.write(work)
    assert await database.read(names) == ["once"]


async def test_the_function_s_own_error_on_a_dead_connection_is_raised(
    database: PostgresDatabase, kill_once: Callable[[], None]
) -> None:
    def work(tx: Tx) -> None:
        add(tx, "never")
        kill_once()
        raise PlantedFault

    with pytest.raises(PlantedFault):
        await database.write(work)
    assert await database.read(names) == []


async def test_prepared_statements_survive_the_function_s_error_but_not_a_server_error(
    database: PostgresDatabase,
) -> None:
    # The watcher for commits uses a connection now and then, so there may be two that take turns.
    used: list[int] = []

    def count_prepared(tx: ReadTx) -> tuple[int, int]:
        assert isinstance(tx, PostgresTx)
        rows = tx.connection.execute("SELECT count(*) FROM pg_prepared_statements", prepare=False).fetchall()
        return tx.connection.info.backend_pid, int(rows[0][0])

    async def prepared_there() -> int:
        while True:
            pid, prepared = await database.read(count_prepared)
            if pid == used[-1]:
                return prepared

    def add_three(tx: Tx) -> None:
        assert isinstance(tx, PostgresTx)
        used.append(tx.connection.info.backend_pid)
        for name in ("Ana", "Ben", "Cem"):
            add(tx, name)

    def fail(tx: Tx) -> None:
        add_three(tx)
        raise PlantedFault

    def complain(tx: Tx) -> None:
        assert isinstance(tx, PostgresTx)
        add_three(tx)
        tx.connection.execute("SELECT nothing_like_this")

    await database.write(add_three)
    assert await prepared_there()
    with pytest.raises(PlantedFault):
        await database.write(fail)
    assert await prepared_there()
    # The cause of the error may be a prepared statement, if a table has changed.
    with pytest.raises(StoreError):
        await database.write(complain)
    assert await prepared_there() == 0


async def test_a_read_whose_connection_dies_at_its_end_returns_its_result(
    database: PostgresDatabase, kill_once: Callable[[], None]
) -> None:
    await database.write(lambda tx: add(tx, "there"))
    runs = count(1)

    def work(tx: ReadTx) -> tuple[int, list[str]]:
        found = names(tx)
        kill_once()
        return next(runs), found

    assert await database.read(work) == (1, ["there"])


@pytest.mark.parametrize(
    ("cut", "expected_runs"),
    [
        ("before its answer", 1),
        ("before the server receives it", 2),
        ("long before the server receives it", 1),
    ],
)
async def test_the_server_decides_the_outcome_of_a_commit_without_an_answer(
    line: Line, far: PostgresDatabase, cut: Cut, expected_runs: int
) -> None:
    await far.write(lambda tx: add(tx, "before"))
    runs = count(1)
    latest = 0

    def work(tx: Tx) -> int:
        nonlocal latest
        latest = next(runs)
        return add(tx, "once")

    line.cut_next_commit(cut)
    person_id = await far.write(work)
    assert await asyncio.to_thread(line.cuts.acquire, timeout=PATIENCE_SECONDS)
    assert latest == expected_runs
    assert await far.read(names) == ["before", "once"]
    assert await far.read(lambda tx: people.get_person(tx, person_id).name) == "once"


async def test_a_commit_with_an_unknown_outcome_is_not_reported_as_a_failure(
    line: Line, postgres_url: str
) -> None:
    far = PostgresDatabase.open(line.url, patience_seconds=1)
    line.cut_next_commit("before its answer", and_die=True)
    with pytest.raises(
        StoreUnavailable, match=r"outcome of a commit is not known.*Look before you try again"
    ):
        await far.write(lambda tx: add(tx, "perhaps"))
    assert line.cuts.acquire(timeout=PATIENCE_SECONDS)
    await far.close()


async def test_a_server_that_stays_away_is_unavailable_and_nothing_is_written(
    line: Line, postgres_url: str
) -> None:
    far = PostgresDatabase.open(line.url, patience_seconds=1)
    line.go_dead()
    with pytest.raises(StoreUnavailable, match="does not answer; nothing was written"):
        await far.write(lambda tx: add(tx, "never"))
    line.revive()
    # The pool retries at growing intervals.
    for _ in range(PATIENCE_SECONDS):
        try:
            await far.write(lambda tx: add(tx, "later"))
        except StoreUnavailable:
            continue
        break
    assert await far.read(names) == ["later"]
    await far.close()


async def test_a_waiter_notices_commits_after_the_server_was_away(
    line: Line, far: PostgresDatabase, postgres_url: str, ids: Ids
) -> None:
    talk = await Talk.begin(far, ids)
    session_id = await talk.session()
    while await far.changed(since=far.change_no, timeout_seconds=0.25):
        continue
    since = far.change_no
    waiting = asyncio.create_task(far.changed(since=since, timeout_seconds=PATIENCE_SECONDS))
    line.go_dead()
    near = PostgresDatabase.open(postgres_url)
    await near.write(lambda tx: feed.add_event(tx, session_id, "session.changed"))
    done, _ = await asyncio.wait([waiting], timeout=0.5)
    assert not done
    line.revive()
    assert await waiting
    await near.close()


async def test_a_deadlock_is_resolved_by_rerunning_one_of_the_two(database: PostgresDatabase) -> None:
    one, two = [await database.write(lambda tx: add(tx, "x")) for _ in range(2)]
    both = threading.Barrier(2)
    runs = count(1)

    def lock(first: int, second: int) -> Callable[[Tx], None]:
        def work(tx: Tx) -> None:
            tx.row("people.next_feed_no", person_id=first)
            if next(runs) <= 2:
                both.wait(PATIENCE_SECONDS)
            tx.row("people.next_feed_no", person_id=second)

        return work

    await asyncio.gather(database.write(lock(one, two)), database.write(lock(two, one)))
    assert next(runs) >= 4  # two runs and one rerun, which may lose again
    rows = await database.write(
        lambda tx: [tx.row("people.next_feed_no", person_id=person_id) for person_id in (one, two)]
    )
    assert rows == [(3,), (3,)]


async def test_a_lost_race_is_retried_and_finally_given_up(database: PostgresDatabase) -> None:
    runs = count(1)

    def lose(times: int) -> Callable[[Tx], None]:
        def work(tx: Tx) -> None:
            add(tx, "won")
            if next(runs) <= times:
                raise RaceLost

        return work

    await database.write(lose(2))
    assert await database.read(names) == ["won"]
    with pytest.raises(StoreUnavailable, match="in 10 attempts; nothing was written"):
        await database.write(lose(1_000))
    assert await database.read(names) == ["won"]


async def test_a_swallowed_database_error_is_not_reported_as_a_success(
    database: PostgresDatabase,
) -> None:
    def careless(tx: Tx) -> None:
        add(tx, "lost with the transaction")
        with pytest.raises(psycopg.Error):
            tx.row("people.add", name="x", role="emperor")

    with pytest.raises(StoreError, match="overlooked; nothing was written"):
        await database.write(careless)
    assert await database.read(names) == []


@pytest.fixture(scope="module")
def honest_server() -> Iterator[PrivateServer]:
    """Yield a server that is durable in a crash, and writes to disk as late as possible."""
    with PrivateServer(durable=True, settings={"wal_writer_delay": "10s"}) as server:
        yield server


async def test_a_crash_of_the_server_under_load_loses_no_acknowledged_message(
    honest_server: PrivateServer, ids: Ids
) -> None:
    url = honest_server.create_database()
    database = PostgresDatabase.open(url)
    talk = await Talk.begin(database, ids)
    sessions = [await talk.session() for _ in range(6)]
    crashed = asyncio.Event()
    acknowledged: dict[SessionId, list[str]] = {session_id: [] for session_id in sessions}

    async def append_until_after_the_crash(session_id: SessionId) -> None:
        texts = acknowledged[session_id]
        after = 0
        while after < 5:
            after += crashed.is_set()
            text = f"{session_id} {len(texts)}"
            await talk.append(session_id, "user", text)
            texts.append(text)

    async def crash() -> None:
        while min(len(texts) for texts in acknowledged.values()) < 5:
            await database.changed(since=database.change_no, timeout_seconds=1)
        await asyncio.to_thread(pg_ctl, url, "restart", "--mode", "immediate")
        crashed.set()

    await asyncio.gather(crash(), *(append_until_after_the_crash(session_id) for session_id in sessions))
    for session_id in sessions:
        assert await talk.texts(session_id) == acknowledged[session_id]
    await database.close()


async def test_a_reused_transaction_id_without_facts_leaves_the_outcome_open(
    honest_server: PrivateServer, short_folder: Path
) -> None:
    for _ in range(10):
        with tempfile.TemporaryDirectory(dir=short_folder) as folder:
            if await _id_was_reused(honest_server.create_database(), Path(folder)):
                return
    pytest.fail("The server never reused a lost transaction id.")


async def _id_was_reused(url: str, folder: Path) -> bool:
    """Lose a transaction in a crash, run another one, and check the outcome for the first one's writer.

    If the server's own work wrote the lost transaction id to disk before the crash, the id is not reused.
    """
    numbers: list[str] = []

    def work(tx: Tx) -> None:
        add(tx, "lost at first")
        assert isinstance(tx, PostgresTx)
        row = tx.connection.execute("SELECT CAST(pg_current_xact_id() AS TEXT)").fetchone()
        assert row is not None
        numbers.append(row[0])

    with line_to(url, folder) as line:
        far = PostgresDatabase.open(line.url)
        await far.write(lambda tx: add(tx, "before"))
        line.cut_next_commit("before the server receives it", and_die=True)
        writing = asyncio.create_task(far.write(work))
        assert await asyncio.to_thread(line.cuts.acquire, timeout=PATIENCE_SECONDS)
        await asyncio.to_thread(pg_ctl, url, "restart", "--mode", "immediate")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("UPDATE people SET name = 'after'")
            fate = connection.execute("SELECT pg_xact_status(CAST(%s AS xid8))", numbers).fetchone()
        line.revive()
        was_reused = fate == ("committed",)
        if was_reused:
            with pytest.raises(StoreUnavailable, match=r"not known: the server crashed"):
                await writing
        else:
            await writing
        assert await far.read(names) == (["after"] if was_reused else ["after", "lost at first"])
        await far.close()
    return was_reused


@pytest.mark.parametrize("id_was_reused", [False, True])
async def test_a_transaction_lost_in_a_crash_is_not_mistaken_for_another_with_its_id(
    honest_server: PrivateServer, short_folder: Path, *, id_was_reused: bool
) -> None:
    url = honest_server.create_database()
    with line_to(url, short_folder) as line:
        far = PostgresDatabase.open(line.url)
        person_id = await far.write(lambda tx: add(tx, "before"))
        numbers: list[int] = []

        def work(tx: Tx) -> int:
            row = tx.row("people.next_feed_no", person_id=person_id)
            assert row is not None
            tx.run("feed.add_personal", person_id=person_id, number=row[0], kind="home", subject=None)
            numbers.append(row[0])
            return int(row[0])

        line.cut_next_commit("before the server receives it", and_die=True)
        writing = asyncio.create_task(far.write(work))
        assert await asyncio.to_thread(line.cuts.acquire, timeout=PATIENCE_SECONDS)
        await asyncio.to_thread(pg_ctl, url, "restart", "--mode", "immediate")
        if id_was_reused:
            _take_the_next_id(url, person_id)
        line.revive()
        result = await writing
        assert len(numbers) == 2
        facts = await far.read(lambda tx: feed.list_after(tx, after=START, person_id=person_id, limit=9))
        assert [event.number for event in facts] == ([1, 2] if id_was_reused else [1])
        assert facts[-1].number == result
        await far.close()


def _take_the_next_id(url: str, person_id: int) -> None:
    """Run a transaction as a faster gateway would; it gets the id of the lost transaction."""
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE people SET feed_no = feed_no + 1 WHERE id = %s", (person_id,))
        connection.execute(
            "INSERT INTO feed (person_id, number, kind, at) VALUES (%s, 1, 'home', 1)", (person_id,)
        )


async def test_a_gateway_that_freezes_in_a_transaction_does_not_keep_its_rows_locked(
    postgres_url: str,
) -> None:
    frozen = PostgresDatabase.open(postgres_url, silence_seconds=0.5)
    database = PostgresDatabase.open(postgres_url)
    locked, thawed = threading.Event(), threading.Event()
    attempts = count(1)

    def freeze_with_a_lock(tx: Tx) -> int:
        attempt = next(attempts)
        people.ensure_owner(tx)
        people.mark_welcomed(tx, 1)
        if attempt == 1:
            locked.set()
            thawed.wait(PATIENCE_SECONDS)
        people.get_person(tx, 1)
        return attempt

    try:
        await database.write(people.ensure_owner)
        freezing = asyncio.create_task(frozen.write(freeze_with_a_lock))
        await asyncio.to_thread(locked.wait, PATIENCE_SECONDS)
        async with asyncio.timeout(PATIENCE_SECONDS / 2):
            assert await database.write(lambda tx: people.mark_welcomed(tx, 1))
        thawed.set()
        assert await freezing == 2
    finally:
        thawed.set()
        await frozen.close()
        await database.close()
