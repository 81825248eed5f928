"""Run a function in a PostgreSQL transaction, and again if another attempt can overcome the failure.

A function is run again as a whole after a serialization failure, a deadlock or a connection lost before its commit. If
the connection is lost during the commit, the server is asked for the outcome.
"""

import threading
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from keryx.clock import SECOND, Clock, Micros, SystemClock
from keryx.errors import InvalidValue, StoreError, StoreUnavailable
from keryx.store.database import Hook, RaceLost, T
from keryx.store.postgres_tx import Connection, PostgresTx
from keryx.store.statements import load

ATTEMPTS_MAX = 10
"""More than there are connections: after a restart of the server, each attempt may get a dead connection."""
PAUSE_MAX: Micros = 250_000
LOOK_SECONDS = 0.1

_NOW = "CAST(floor(extract(epoch FROM clock_timestamp()) * 1000000) AS BIGINT)"
_BEGIN_WRITE = f"BEGIN ISOLATION LEVEL READ COMMITTED; SELECT CAST(pg_current_xact_id() AS TEXT), {_NOW}"
_BEGIN_READ = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT '', {_NOW}"
# A server that crashed may have lost the transaction and given its number to another one, whose facts have another
# time. If that one left no facts, the statistics show the crash, because they begin again after it. (The xmax of a
# snapshot does not tell how far the server has come: the transaction may be the newest of all and still run.)
_FATE = """WITH told AS (SELECT at FROM feed WHERE xid = CAST(%(xid)s AS xid8) LIMIT 1)
SELECT CASE
    WHEN EXISTS (SELECT 1 FROM told WHERE at = %(now)s) THEN 'committed'
    WHEN EXISTS (SELECT 1 FROM told) THEN 'aborted'
    WHEN (SELECT stats_reset FROM pg_stat_bgwriter) > to_timestamp(CAST(%(began_at)s AS BIGINT) / 1000000.0)
        AND pg_xact_status(CAST(%(xid)s AS xid8)) = 'committed' THEN 'of another or ours'
    ELSE pg_xact_status(CAST(%(xid)s AS xid8)) END"""
_RETRIED = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.errors.IdleInTransactionSessionTimeout,
    RaceLost,
)
"""Lost connections, deadlocks, serialization failures and a server that starts up are operational errors."""
_UNFIT = (psycopg.DataError, psycopg.errors.ProgramLimitExceeded)
"""A limit is an operational error too, but another attempt does not make a value shorter."""


class CommitUnknown(Exception):
    """The connection was lost during COMMIT of this transaction."""

    def __init__(self, xid: str, *, began_at: Micros, now: Micros, result: Any) -> None:
        super().__init__(xid)
        self.marks = {"xid": xid, "began_at": began_at, "now": now}
        """The parameters of the question to the server: the transaction's number, and its time by both clocks."""
        self.result = result


class PostgresRetries:
    """Runs functions on the connections of a pool."""

    def __init__(self, pool: "ConnectionPool[Connection]", *, clock: Clock | None, hook: Hook | None) -> None:
        self._pool = pool
        self._clock = clock
        # Pacing needs the time of this machine, even if a simulator sets the other clock.
        self._pace = SystemClock()
        self._hook = hook
        self._statements = load("postgres")
        self._pause = threading.Event()

    def run(self, work: Callable[[Any], T], *, read_only: bool) -> T:
        """Run ``work`` in a transaction, and again after a failure that another attempt can overcome."""
        failure: BaseException | None = None
        for attempt in range(ATTEMPTS_MAX):
            try:
                return self._attempt(work, read_only=read_only)
            except CommitUnknown as unknown:
                if self._was_committed(unknown):
                    result: T = unknown.result
                    return result
                failure = unknown.__cause__
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

    def make_tx(self, connection: Connection, *, server_now: Micros) -> PostgresTx:
        """Return a transaction on a connection, at the server's time or at that of the clock that replaces it."""
        now = server_now if self._clock is None else self._clock.now()
        return PostgresTx(connection, self._statements, now=now, clock=self._clock, hook=self._hook)

    def _attempt(self, work: Callable[[Any], T], *, read_only: bool) -> T:
        with self._pool.connection() as connection:
            times = connection.execute(_BEGIN_READ if read_only else _BEGIN_WRITE, prepare=False)
            times.nextset()
            row = times.fetchone()
            assert row is not None, "a SELECT without FROM has a row"
            xid, server_now = row
            tx = self.make_tx(connection, server_now=server_now)
            try:
                result = work(tx)
            except BaseException as error:
                _roll_back(connection, error)
                raise
            try:
                ended = connection.execute("COMMIT", prepare=False)
            except psycopg.OperationalError as error:
                if read_only:
                    return result
                raise CommitUnknown(xid, began_at=server_now, now=tx.now, result=result) from error
            if ended.statusmessage != "COMMIT":
                raise StoreError("A statement failed and its error was overlooked; nothing was written.")
        return result

    def _was_committed(self, unknown: CommitUnknown) -> bool:
        """Ask the server for the outcome of a transaction whose COMMIT was not answered, and wait while it runs."""
        give_up_at = self._pace.monotonic() + int(self._pool.timeout * SECOND)
        while self._pace.monotonic() < give_up_at:
            try:
                with self._pool.connection() as connection:
                    row = connection.execute(_FATE, unknown.marks).fetchone()
            except (psycopg.OperationalError, psycopg.errors.InvalidParameterValue) as error:
                # A number that the server has not reached was lost in its crash.
                row = ("aborted",) if isinstance(error, psycopg.errors.InvalidParameterValue) else None
            fate = row and row[0]
            if fate in ("committed", "aborted"):
                return bool(fate == "committed")
            if fate == "of another or ours":
                raise StoreUnavailable(
                    "The outcome of a commit is not known: the server crashed. Look before you try again."
                )
            self._pause.wait(LOOK_SECONDS)
        raise StoreUnavailable(
            "The outcome of a commit is not known: the server does not answer. Look before you try again."
        )


def _roll_back(connection: Connection, error: BaseException) -> None:
    """Roll back; forget the prepared statements only if the server reported an error.

    psycopg forgets them at every rollback, and a gateway that lost a lease would have to plan all statements again.
    """
    if connection.closed:
        return
    if isinstance(error, psycopg.Error):
        connection.execute("ROLLBACK")
    else:
        connection.pgconn.exec_(b"ROLLBACK")
