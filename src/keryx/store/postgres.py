"""The shared store: one PostgreSQL server, any number of gateways.

The server's clock is the only clock, so that no decision compares the clocks of two machines.
"""

import threading
from collections.abc import Callable
from functools import partial

import psycopg
from psycopg_pool import ConnectionPool

from keryx.clock import Clock, SystemClock
from keryx.errors import StoreCorrupt, StoreError, StoreUnavailable, StoreUnsafe
from keryx.store.database import Database, Hook, ReadTx, T, Tx, noting
from keryx.store.migrate import migrate_postgres, search_schema, search_tables
from keryx.store.postgres_retries import PostgresRetries
from keryx.store.postgres_tx import Connection, PostgresTx
from keryx.store.statements import Topic
from keryx.store.waiting import CommitCounter, Threads, closed, run_elsewhere

OLDEST_SERVER = 140_000
CONNECTIONS_MAX = 8
PREPARED_MAX = 400
"""The statements that a connection keeps prepared: a gateway uses some 180, and the usual 100 evicted each other."""
PATIENCE_SECONDS = 30.0
SILENCE_SECONDS = 5.0
"""The server rolls back a transaction that sends no statement for so long: a frozen gateway keeps no row locked.

This is far longer than a transaction takes and far shorter than a lease.
"""
WATCH_SECONDS = 0.1

# Commits become visible out of order, and a fact becomes readable when an older transaction ends: both change this.
_NEWEST = """SELECT sum(id), count(*) FILTER (WHERE xid < pg_snapshot_xmin(pg_current_snapshot()))
    FROM (SELECT xid, id FROM feed ORDER BY xid DESC, id DESC LIMIT 100) AS newest"""


class PostgresDatabase(Database):
    """A store on a PostgreSQL server."""

    dialect = "postgres"

    def __init__(self, pool: "ConnectionPool[Connection]", *, clock: Clock | None, hook: Hook | None) -> None:
        self._pool = pool
        self._retries = PostgresRetries(pool, clock=clock, hook=hook)
        self._threads = Threads(CONNECTIONS_MAX, name="keryx-postgres")
        self._kick = threading.Event()
        self._stopped = threading.Event()
        self._changes = CommitCounter(on_wait=self._kick.set)
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
        silence_seconds: float = SILENCE_SECONDS,
    ) -> "PostgresDatabase":
        """Connect to ``url`` and migrate it; blocks, so call it from a thread. A given clock replaces the server's.

        ``patience_seconds`` is how long a call waits for a server that does not answer; ``silence_seconds`` is how long
        the server waits for the next statement of a transaction.
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
            configure=partial(_configure, silence_ms=int(silence_seconds * 1000)),
            timeout=patience_seconds,
        )
        return cls(pool, clock=clock, hook=hook)

    async def write(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` in one transaction, and again if necessary."""

        def run() -> T:
            wakes: set[Topic] = set()
            result = self._retries.run(noting(work, wakes), read_only=False)
            self._changes.note(wakes)
            return result

        return await self._threads.run(run)

    async def write_index(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` in one transaction; a damaged index is emptied, and ``work`` runs once more."""
        try:
            return await self._threads.run(lambda: self._retries.run(work, read_only=False))
        except StoreCorrupt:
            await self.discard_index()
            return await self._threads.run(lambda: self._retries.run(work, read_only=False))

    async def read(self, work: Callable[[ReadTx], T]) -> T:
        """Run ``work`` on one snapshot."""
        return await self._threads.run(lambda: self._retries.run(work, read_only=True))

    async def discard_index(self) -> None:
        """Drop the index's tables and make them again."""
        await self._threads.run(lambda: self._retries.run(_reset_index, read_only=False))

    @property
    def change_no(self) -> int:
        """The number of commits noticed so far."""
        return self._changes.number

    async def changed(self, *, since: int, timeout_seconds: float, topic: Topic | None = None) -> bool:
        """Wait for a commit of this process, or for a new fact of another one, which is looked for every 100 ms."""
        if self._closed:
            raise closed()
        return await self._changes.wait(since, timeout_seconds, topic=topic)

    def _watch(self) -> None:
        seen = None
        while not self._closed:
            if not self._changes.watched:
                self._kick.wait()
            self._kick.clear()
            # Each waiter sets the event. Without this pause, each commit of our own would be noticed twice.
            self._stopped.wait(WATCH_SECONDS)
            try:
                with self._pool.connection(timeout=1.0) as connection:
                    newest = connection.execute(_NEWEST).fetchone()
            except psycopg.OperationalError:
                # The pool reconnects by itself; until then no commit can be noticed.
                continue
            if newest != seen:
                seen = newest
                self._changes.note()

    async def close(self) -> None:
        """Finish running calls and close all connections."""
        if not self._closed:
            await run_elsewhere(self._stop)

    def _stop(self) -> None:
        self._threads.close()
        self._closed = True
        self._kick.set()
        self._stopped.set()
        self._watcher.join()
        self._changes.note()
        self._pool.close()


def _configure(connection: Connection, *, silence_ms: int) -> None:
    connection.prepared_max, connection.prepare_threshold = PREPARED_MAX, 1
    connection.execute(f"SET idle_in_transaction_session_timeout = {silence_ms}".encode())


def _reset_index(tx: PostgresTx) -> None:
    for name in search_tables("postgres"):
        tx.connection.execute(f"DROP TABLE IF EXISTS {name}".encode())
    for statement in search_schema("postgres"):
        tx.connection.execute(statement.encode())


def check_server(version: int) -> None:
    """Raise ``StoreUnsafe`` for a server older than 14."""
    if version < OLDEST_SERVER:
        raise StoreUnsafe(f"PostgreSQL {version // 10_000} is too old; Keryx needs 14 or newer.")
