"""The shared store: one PostgreSQL, any number of gateways.

A function is run again whole after a serialization failure, a deadlock or a connection lost before its commit; when
the connection is lost during the commit, the server is asked what became of it. The server's clock is the only one,
so that no decision compares clocks of two machines.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from keryx.clock import SECOND, Clock, Micros, SystemClock
from keryx.errors import InvalidValue, StoreCorrupt, StoreError, StoreUnavailable, StoreUnsafe
from keryx.store.database import Contended, Database, Hook, ReadTx, Row, T, Tx, noting
from keryx.store.migrate import migrate_postgres, search_schema, search_tables
from keryx.store.statements import Statement, Topic, load
from keryx.store.waiting import Changes, Threads, closed, finish, on_new_thread

OLDEST_SERVER = 140_000
CONNECTIONS_MAX = 8
PREPARED_MAX = 400
"""Statements that a connection keeps prepared: a gateway uses some 180, and of the usual 100 each pushed one out."""
PATIENCE_SECONDS = 30.0
ATTEMPTS_MAX = 10
"""More than there are connections: after a restart of the server each attempt may meet one that is dead."""
PAUSE_MAX: Micros = 250_000
WATCH_SECONDS = 0.1

_NOW = "CAST(floor(extract(epoch FROM clock_timestamp()) * 1000000) AS BIGINT)"
_BEGIN_WRITE = f"BEGIN ISOLATION LEVEL READ COMMITTED; SELECT CAST(pg_current_xact_id() AS TEXT), {_NOW}"
_BEGIN_READ = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT '', {_NOW}"
# A server that crashed may have lost the transaction and given its number to another, whose facts bear another time.
# If that left no facts, the statistics betray it, which begin anew after a crash. (The xmax of a snapshot does not tell
# how far the server has come: the transaction in question may be the newest of all and still under way.)
_FATE = """WITH told AS (SELECT at FROM feed WHERE xid = CAST(%(xid)s AS xid8) LIMIT 1)
SELECT CASE
    WHEN EXISTS (SELECT 1 FROM told WHERE at = %(now)s) THEN 'committed'
    WHEN EXISTS (SELECT 1 FROM told) THEN 'aborted'
    WHEN (SELECT stats_reset FROM pg_stat_bgwriter) > to_timestamp(CAST(%(began_at)s AS BIGINT) / 1000000.0)
        AND pg_xact_status(CAST(%(xid)s AS xid8)) = 'committed' THEN 'of another or ours'
    ELSE pg_xact_status(CAST(%(xid)s AS xid8)) END"""
# Commits become visible out of order, and a fact becomes readable when an older transaction ends: both change this.
_NEWEST = """SELECT sum(id), count(*) FILTER (WHERE xid < pg_snapshot_xmin(pg_current_snapshot()))
    FROM (SELECT xid, id FROM feed ORDER BY xid DESC, id DESC LIMIT 100) AS newest"""
_RETRIED = (psycopg.OperationalError, psycopg.InterfaceError, Contended)
"""Lost connections, deadlocks and serialization failures are operational errors; so is a server that starts up."""
_UNFIT = (psycopg.DataError, psycopg.errors.ProgramLimitExceeded)
"""The limits count as operational errors, too, but no second attempt makes a value shorter."""

Connection = psycopg.Connection[Row]


class CommitUnknown(Exception):
    """The connection was lost during COMMIT of this transaction."""

    def __init__(self, xid: str, *, began_at: Micros, now: Micros, result: Any) -> None:
        super().__init__(xid)
        self.marks = {"xid": xid, "began_at": began_at, "now": now}
        """What the server is asked with: the transaction's number, and its time by the server's clock and by ours."""
        self.result = result


class PostgresTx(Tx):
    """A transaction on one PostgreSQL connection."""

    def __init__(
        self,
        connection: Connection,
        statements: Mapping[str, Statement],
        *,
        now: Micros,
        clock: Clock | None,
        hook: Hook | None,
    ) -> None:
        super().__init__(statements, hook)
        self.connection = connection
        self._now = now
        self._clock = clock

    @property
    def now(self) -> Micros:
        """The server's wall time at which the function began."""
        return self._now

    @property
    def lease_now(self) -> Micros:
        """The server's clock: every holder of a lease on this database shares it."""
        return self._now if self._clock is None else self._clock.monotonic()

    @property
    def boot_id(self) -> str:
        """Empty: the server's clock does not start over."""
        return ""

    def rows(self, name: str, /, **params: Any) -> list[Row]:
        """Run a named statement and return all its rows."""
        statement = self._statement(name, params)
        rows = self.connection.execute(statement.sql.encode(), params).fetchall()
        if statement.wakes and rows:
            self.wakes |= statement.wakes
        return rows

    def run(self, name: str, /, **params: Any) -> int:
        """Run a named statement and return how many rows it changed."""
        statement = self._statement(name, params)
        changed = self.connection.execute(statement.sql.encode(), params).rowcount
        if statement.wakes and changed:
            self.wakes |= statement.wakes
        return changed

    def run_many(self, name: str, /, many: Sequence[dict[str, Any]]) -> None:
        """Run a named statement once for each set of parameters, in one round trip."""
        if not many:
            return
        given: dict[str, Any] = {}
        statement = self._statement(name, given)
        self.wakes |= statement.wakes
        with self.connection.cursor() as cursor:
            cursor.executemany(statement.sql.encode(), [{**params, **given} for params in many])


class PostgresDatabase(Database):
    """A store on a PostgreSQL server."""

    dialect = "postgres"

    def __init__(self, pool: "ConnectionPool[Connection]", *, clock: Clock | None, hook: Hook | None) -> None:
        self._pool = pool
        self._clock = clock
        # Pacing is about this machine, whatever time a simulator says it is.
        self._pace = SystemClock()
        self._hook = hook
        self._statements = load("postgres")
        self._threads = Threads(CONNECTIONS_MAX, name="keryx-postgres")
        self._kick = threading.Event()
        self._stopped = threading.Event()
        self._changes = Changes(on_wait=self._kick.set)
        self._pause = threading.Event()
        self._closed = False
        self._watcher = threading.Thread(target=self._watch, name="keryx-watcher", daemon=True)
        self._watcher.start()

    @classmethod
    def open(
        cls,
        url: str,
        *,
        clock: Clock | None = None,
        hook: Hook | None = None,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> "PostgresDatabase":
        """Connect to ``url`` and migrate it; blocks, so call it from a thread. A given clock replaces the server's.

        ``patience_seconds`` is how long a call waits for a server that went away.
        """
        try:
            with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
                check_server(connection.info.server_version)
                migrate_postgres(connection, now=(clock or SystemClock()).now())
        except psycopg.OperationalError as error:
            raise StoreUnavailable(
                f"The PostgreSQL server could not be reached: {error}. Check the address."
            ) from error
        except psycopg.Error as error:
            raise StoreError(f"The store could not be opened on PostgreSQL: {error}.") from error
        pool: ConnectionPool[Connection] = ConnectionPool(
            url,
            min_size=1,
            max_size=CONNECTIONS_MAX + 1,
            open=True,
            kwargs={"autocommit": True},
            configure=_keep_prepared,
            timeout=patience_seconds,
        )
        return cls(pool, clock=clock, hook=hook)

    async def write(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` in one transaction, again if it must be."""

        def run() -> T:
            wakes: set[Topic] = set()
            result = self._with_retries(noting(work, wakes), read_only=False)
            self._changes.note(wakes)
            return result

        return await self._threads.run(run)

    async def write_index(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` in one transaction; an index found damaged is begun anew, and ``work`` run once more."""
        try:
            return await self._threads.run(lambda: self._with_retries(work, read_only=False))
        except StoreCorrupt:
            await self.discard_index()
            return await self._threads.run(lambda: self._with_retries(work, read_only=False))

    async def read(self, work: Callable[[ReadTx], T]) -> T:
        """Run ``work`` on one snapshot."""
        return await self._threads.run(lambda: self._with_retries(work, read_only=True))

    async def discard_index(self) -> None:
        """Drop the index's tables and make them again."""
        await self._threads.run(lambda: self._with_retries(_begin_index_anew, read_only=False))

    @property
    def change_no(self) -> int:
        """How many commits were noticed so far."""
        return self._changes.number

    async def changed(self, *, since: int, timeout_seconds: float, topic: Topic | None = None) -> bool:
        """Wait for a commit of this process, or for a new fact of another one, looked for every 100 ms."""
        if self._closed:
            raise closed()
        return await self._changes.wait(since, timeout_seconds, topic=topic)

    def _watch(self) -> None:
        seen = None
        while not self._closed:
            if not self._changes.watched:
                self._kick.wait()
            self._kick.clear()
            # Everybody who waits kicks; without this pause, each commit of our own would be looked for and told twice.
            self._stopped.wait(WATCH_SECONDS)
            try:
                with self._pool.connection(timeout=1.0) as connection:
                    newest = connection.execute(_NEWEST).fetchone()
            except psycopg.OperationalError:
                # The pool connects again by itself; until then there is nothing to see.
                continue
            if newest != seen:
                seen = newest
                self._changes.note()

    async def close(self) -> None:
        """Finish what was begun and let go of all connections."""
        if not self._closed:
            await finish(self._stop, start=on_new_thread)

    def _stop(self) -> None:
        self._threads.close()
        self._closed = True
        self._kick.set()
        self._stopped.set()
        self._watcher.join()
        self._changes.note()
        self._pool.close()

    def _with_retries(self, work: Callable[[Any], T], *, read_only: bool) -> T:
        failure: BaseException | None = None
        for attempt in range(ATTEMPTS_MAX):
            try:
                return self._attempt(work, read_only=read_only)
            except CommitUnknown as question:
                if self._was_committed(question):
                    result: T = question.result
                    return result
                failure = question.__cause__
            except PoolTimeout as error:
                raise StoreUnavailable(
                    "The PostgreSQL server does not answer; nothing was written. Try again."
                ) from error
            except _UNFIT as error:
                raise InvalidValue(f"The database cannot hold or read this value: {error}") from error
            except _RETRIED as error:
                failure = error
            except psycopg.Error as error:
                raise StoreError(f"The database refused a statement: {error}") from error
            pause = min(PAUSE_MAX, 2_000 << attempt)
            self._pause.wait((pause + self._pace.monotonic() % pause) / (2 * SECOND))
        raise StoreUnavailable(
            f"The database did not take this in {ATTEMPTS_MAX} attempts; nothing was written. Try again. ({failure})"
        ) from failure

    def _attempt(self, work: Callable[[Any], T], *, read_only: bool) -> T:
        with self._pool.connection() as connection:
            times = connection.execute(_BEGIN_READ if read_only else _BEGIN_WRITE, prepare=False)
            times.nextset()
            row = times.fetchone()
            assert row is not None, "a SELECT without FROM has a row"
            xid, server_now = row
            now = server_now if self._clock is None else self._clock.now()
            try:
                result = work(
                    PostgresTx(connection, self._statements, now=now, clock=self._clock, hook=self._hook)
                )
            except BaseException as error:
                _roll_back(connection, error)
                raise
            try:
                ended = connection.execute("COMMIT", prepare=False)
            except psycopg.OperationalError as error:
                if read_only:
                    return result
                raise CommitUnknown(xid, began_at=server_now, now=now, result=result) from error
            if ended.statusmessage != "COMMIT":
                raise StoreError("A statement failed and its error was overlooked; nothing was written.")
        return result

    def _was_committed(self, question: CommitUnknown) -> bool:
        """Ask the server what became of a transaction whose COMMIT was not answered; wait while it is under way."""
        give_up_at = self._pace.monotonic() + int(self._pool.timeout * SECOND)
        while self._pace.monotonic() < give_up_at:
            try:
                with self._pool.connection() as connection:
                    row = connection.execute(_FATE, question.marks).fetchone()
            except (psycopg.OperationalError, psycopg.errors.InvalidParameterValue) as error:
                # A number that the server has not come to was lost when it crashed.
                row = ("aborted",) if isinstance(error, psycopg.errors.InvalidParameterValue) else None
            fate = row and row[0]
            if fate in ("committed", "aborted"):
                return bool(fate == "committed")
            if fate == "of another or ours":
                raise StoreUnavailable(
                    "The outcome of a commit is not known: the server crashed. Look before you try again."
                )
            self._pause.wait(WATCH_SECONDS)
        raise StoreUnavailable(
            "The outcome of a commit is not known: the server does not answer. Look before you try again."
        )


def _roll_back(connection: Connection, error: BaseException) -> None:
    """Take back what was begun; what is prepared is forgotten only where the server itself complained.

    psycopg forgets it with every rollback, and a gateway whose lease was lost would plan all its statements anew.
    """
    if connection.closed:
        return
    if isinstance(error, psycopg.Error):
        connection.execute("ROLLBACK")
    else:
        connection.pgconn.exec_(b"ROLLBACK")


def _keep_prepared(connection: Connection) -> None:
    connection.prepared_max, connection.prepare_threshold = PREPARED_MAX, 1


def _begin_index_anew(tx: PostgresTx) -> None:
    for name in search_tables("postgres"):
        tx.connection.execute(f"DROP TABLE IF EXISTS {name}".encode())
    for statement in search_schema("postgres"):
        tx.connection.execute(statement.encode())


def check_server(version: int) -> None:
    """Raise ``StoreUnsafe`` for a server older than 14."""
    if version < OLDEST_SERVER:
        raise StoreUnsafe(f"PostgreSQL {version // 10_000} is too old; Keryx needs 14 or newer.")
