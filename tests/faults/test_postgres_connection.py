"""A connection that dies, a commit without an answer, a server that crashes: each function takes effect once."""

import asyncio
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest

from keryx.domain.event import START
from keryx.domain.session import SessionId
from keryx.errors import StoreError, StoreUnavailable
from keryx.ids import Ids
from keryx.store.database import Contended, ReadTx, Tx
from keryx.store.postgres import PostgresDatabase, PostgresTx
from keryx.store.tables import feed, people
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
    """A folder whose path leaves room for a socket's name."""
    with tempfile.TemporaryDirectory(prefix="keryx-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def line(postgres_url: str, short_folder: Path) -> Iterator[Line]:
    with line_to(postgres_url, short_folder) as line:
        yield line


@pytest.fixture
async def far(line: Line) -> AsyncIterator[PostgresDatabase]:
    """The store at the other end of a line that can be cut."""
    database = PostgresDatabase.open(line.url, patience_seconds=PATIENCE_SECONDS)
    yield database
    await database.close()


def add(tx: Tx, name: str) -> int:
    return people.add_person(tx, name=name, role="guest").id


def names(tx: ReadTx) -> list[str]:
    rows = (tx.row("people.get", person_id=person_id) for person_id in range(1, 40))
    return [row[1] for row in rows if row]


def kill_whoever_is_in_a_transaction(url: str) -> None:
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
            kill_whoever_is_in_a_transaction(postgres_url)

    return kill


async def test_a_connection_lost_before_commit_runs_the_whole_function_again(
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


async def test_a_connection_lost_right_before_commit_runs_the_whole_function_again(
    database: PostgresDatabase, kill_once: Callable[[], None]
) -> None:
    def work(tx: Tx) -> None:
        add(tx, "once")
        kill_once()

    await database.write(work)
    assert await database.read(names) == ["once"]


async def test_an_error_of_ours_on_a_dead_connection_still_comes_through(
    database: PostgresDatabase, kill_once: Callable[[], None]
) -> None:
    def work(tx: Tx) -> None:
        add(tx, "never")
        kill_once()
        raise PlantedFault

    with pytest.raises(PlantedFault):
        await database.write(work)
    assert await database.read(names) == []


async def test_what_is_prepared_outlives_an_error_of_ours_and_no_complaint_of_the_server(
    database: PostgresDatabase,
) -> None:
    # Whoever looks for news has a connection now and then, so there may be two, and they take turns.
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
    # It may have complained because of what is prepared: a table that is another than it was.
    with pytest.raises(StoreError):
        await database.write(complain)
    assert await prepared_there() == 0


async def test_a_read_whose_connection_dies_at_its_end_has_read_all_the_same(
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
        ("before the server hears of it", 2),
        ("long before the server hears of it", 1),
    ],
)
async def test_the_server_decides_what_became_of_a_commit_without_an_answer(
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


async def test_a_commit_whose_outcome_nobody_tells_is_not_called_a_failure(
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
    # The pool tries again at growing intervals.
    for _ in range(PATIENCE_SECONDS):
        try:
            await far.write(lambda tx: add(tx, "later"))
        except StoreUnavailable:
            continue
        break
    assert await far.read(names) == ["later"]
    await far.close()


async def test_whoever_waits_for_news_gets_them_after_the_server_was_away(
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


async def test_a_deadlock_is_resolved_by_running_one_of_the_two_again(database: PostgresDatabase) -> None:
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
    assert next(runs) >= 4  # two runs, one of them again, which may lose to the other once more
    rows = await database.write(
        lambda tx: [tx.row("people.next_feed_no", person_id=person_id) for person_id in (one, two)]
    )
    assert rows == [(3,), (3,)]


async def test_a_lost_race_is_run_again_and_given_up_in_the_end(database: PostgresDatabase) -> None:
    runs = count(1)

    def lose(times: int) -> Callable[[Tx], None]:
        def work(tx: Tx) -> None:
            add(tx, "won")
            if next(runs) <= times:
                raise Contended

        return work

    await database.write(lose(2))
    assert await database.read(names) == ["won"]
    with pytest.raises(StoreUnavailable, match="in 10 attempts; nothing was written"):
        await database.write(lose(1_000))
    assert await database.read(names) == ["won"]


async def test_an_overlooked_error_of_the_database_is_not_called_a_success(
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
    """A server that keeps its promises in a crash, and writes nothing to disk before it must."""
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


async def test_a_number_given_again_to_a_transaction_without_facts_leaves_the_outcome_open(
    honest_server: PrivateServer, short_folder: Path
) -> None:
    for _ in range(10):
        with tempfile.TemporaryDirectory(dir=short_folder) as folder:
            if await _number_was_given_again(honest_server.create_database(), Path(folder)):
                return
    pytest.fail("The server never gave a lost number again.")


async def _number_was_given_again(url: str, folder: Path) -> bool:
    """Lose a transaction in a crash, let another follow, and check what its writer is told.

    Where the server's own work took the lost number to disk before the crash, no other gets it.
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
        line.cut_next_commit("before the server hears of it", and_die=True)
        writing = asyncio.create_task(far.write(work))
        assert await asyncio.to_thread(line.cuts.acquire, timeout=PATIENCE_SECONDS)
        await asyncio.to_thread(pg_ctl, url, "restart", "--mode", "immediate")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("UPDATE people SET name = 'after'")
            fate = connection.execute("SELECT pg_xact_status(CAST(%s AS xid8))", numbers).fetchone()
        line.revive()
        given_again = fate == ("committed",)
        if given_again:
            with pytest.raises(StoreUnavailable, match=r"not known: the server crashed"):
                await writing
        else:
            await writing
        assert await far.read(names) == (["after"] if given_again else ["after", "lost at first"])
        await far.close()
    return given_again


@pytest.mark.parametrize("number_given_again", [False, True])
async def test_a_transaction_lost_in_a_crash_is_not_mistaken_for_another_of_its_number(
    honest_server: PrivateServer, short_folder: Path, *, number_given_again: bool
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

        line.cut_next_commit("before the server hears of it", and_die=True)
        writing = asyncio.create_task(far.write(work))
        assert await asyncio.to_thread(line.cuts.acquire, timeout=PATIENCE_SECONDS)
        await asyncio.to_thread(pg_ctl, url, "restart", "--mode", "immediate")
        if number_given_again:
            _take_the_next_number(url, person_id)
        line.revive()
        result = await writing
        assert len(numbers) == 2
        facts = await far.read(lambda tx: feed.list_after(tx, after=START, person_id=person_id, limit=9))
        assert [event.number for event in facts] == ([1, 2] if number_given_again else [1])
        assert facts[-1].number == result
        await far.close()


def _take_the_next_number(url: str, person_id: int) -> None:
    """Do as another gateway would that is faster: its transaction gets the number that the lost one had."""
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE people SET feed_no = feed_no + 1 WHERE id = %s", (person_id,))
        connection.execute(
            "INSERT INTO feed (person_id, number, kind, at) VALUES (%s, 1, 'home', 1)", (person_id,)
        )
