"""The embedded store: one SQLite file, and a second one for the search index, which can be rebuilt.

One thread writes messages, one writes the index, a few read, and one notices commits of other processes. Nothing else
in the process may open the files: closing a foreign descriptor would drop SQLite's locks.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import apsw

from keryx.clock import SECOND, Clock, Micros, SystemClock
from keryx.errors import StoreCorrupt, StoreError, StoreUnavailable
from keryx.store.database import Database, Hook, ReadTx, T, Tx, noting
from keryx.store.filesystem import refuse_network
from keryx.store.lost_store import mark_store, refuse_lost_store
from keryx.store.migrate import LOCK_WAIT_MS, migrate_sqlite
from keryx.store.sqlite_copy import copy_before_migration, delete_old_copies
from keryx.store.sqlite_files import (
    LOG_BYTES_MAX,
    check_version,
    file_uri,
    index_path,
    make_private,
    reset_index,
    set_up,
    set_up_index,
)
from keryx.store.sqlite_tx import SqliteTx
from keryx.store.sqlite_writer import Writer, translate
from keryx.store.statements import Topic, load
from keryx.store.waiting import CommitCounter, Threads, closed, run_elsewhere

READERS = 4
STATEMENTS_KEPT = 512
"""The prepared statements of a connection. Each execution takes one of the driver's places, so a statement is kept only
if it comes again within so many executions. A turn writes some seventy, and those of several turns come in groups."""
READ_MOMENT_SECONDS = 0.0003
READER_WAIT_MS = 2_000
READ_LIMIT: Micros = 1 * SECOND
WATCH_SECONDS = 0.1


class SqliteDatabase(Database):
    """A store in one file, shared by any number of processes on this machine."""

    dialect = "sqlite"

    def __init__(self, path: Path, *, clock: Clock, hook: Hook | None, vfs: str | None) -> None:
        self._path = path
        self._index_path = index_path(path)
        self._clock = clock
        # Pacing needs the time of this machine, even if a simulator sets the other clock.
        self._pace = SystemClock()
        self._hook = hook
        self._vfs = vfs
        self._statements = load("sqlite")
        self._kick = threading.Event()
        self._stopped = threading.Event()
        self._changes = CommitCounter(on_wait=self._kick.set)
        self._wakes: set[Topic] = set()
        """The topics that the present batch may give work to; only the writer's thread uses it."""
        self._local = threading.local()
        self._connections: list[apsw.Connection] = []
        self._closed = False

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        clock: Clock | None = None,
        hook: Hook | None = None,
        vfs: str | None = None,
        marker_folder: Path | None = None,
    ) -> "SqliteDatabase":
        """Open the store at ``path``, making or migrating it; blocks, so call it from a thread.

        ``vfs`` names a file layer registered with SQLite, through which tests plant faults of the disk.
        ``marker_folder`` is where a file tells that the store was created, in case the store's volume is lost.
        """
        check_version(apsw.sqlite_lib_version())
        refuse_network(path.parent)
        refuse_lost_store(path, marker_folder)
        database = cls(path, clock=clock or SystemClock(), hook=hook, vfs=vfs)
        try:
            database._start()
            mark_store(path, marker_folder)
        except apsw.Error as error:
            database._close_connections()
            raise translate(error) from error
        except StoreError:
            database._close_connections()
            raise
        return database

    def _start(self) -> None:
        make_private(self._path)
        self._write_connection = connection = self._connect(self._path, wait_ms=LOCK_WAIT_MS)
        set_up(connection)
        now = self._clock.now()
        migrate_sqlite(connection, now=now, copy=partial(copy_before_migration, self._path, now=now))
        delete_old_copies(self._path, now=now)
        # The index comes after the store's first commit: an index without a store shows that the store was lost.
        make_private(self._index_path)
        # From here on the writer waits for locks in its own way.
        connection.set_busy_timeout(0)
        self._watch_connection = self._connect(self._path, wait_ms=READER_WAIT_MS)
        set_up(self._watch_connection)
        self._index_connection = self._open_index()
        self._writer = Writer(connection, self._pace, name="keryx-writer", on_commit=self._count)
        self._index_writer = Writer(self._index_connection, self._pace, name="keryx-index")
        self._readers = Threads(READERS, name="keryx-reader", moment_seconds=READ_MOMENT_SECONDS)
        self._watcher = threading.Thread(target=self._watch, name="keryx-watcher", daemon=True)
        self._watcher.start()

    def _connect(self, path: Path, *, wait_ms: int) -> apsw.Connection:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
        connection = apsw.Connection(
            file_uri(path), flags=flags, vfs=self._vfs, statementcachesize=STATEMENTS_KEPT
        )
        self._connections.append(connection)
        connection.set_busy_timeout(wait_ms)
        return connection

    def _open_index(self) -> apsw.Connection:
        """Open the index file for writing, with the store attached; an index that cannot be read is emptied."""
        connection = self._connect(self._index_path, wait_ms=READER_WAIT_MS)
        try:
            set_up_index(connection)
        except (apsw.CorruptError, apsw.NotADBError):
            reset_index(connection)
        self._attach_store(connection)
        return connection

    def _attach_store(self, connection: apsw.Connection) -> None:
        connection.execute("ATTACH ? AS store", (f"{file_uri(self._path)}?mode=ro",))

    def _reader(self) -> apsw.Connection:
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._connect(self._path, wait_ms=READER_WAIT_MS)
            set_up(connection)
            connection.execute("ATTACH ? AS search", (file_uri(self._index_path),))
            connection.execute("PRAGMA query_only=ON")
            self._local.connection = connection
        return connection

    async def write(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` on the writer thread; return once its commit is on disk."""
        return await self._transact(self._writer, self._write_connection, noting(work, self._wakes))

    def _count(self) -> Sequence[asyncio.Future[None]]:
        woken = self._changes.count(self._wakes)
        self._wakes.clear()
        return woken

    async def write_index(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` on the index's own thread; a damaged index is emptied, and ``work`` runs once more."""
        try:
            return await self._write_index(work)
        except StoreCorrupt:
            await self.discard_index()
            return await self._write_index(work)

    async def _write_index(self, work: Callable[[Tx], T]) -> T:
        return await self._transact(self._index_writer, self._index_connection, work)

    async def _transact(self, writer: Writer, connection: apsw.Connection, work: Callable[[Tx], T]) -> T:
        statements, clock, hook = self._statements, self._clock, self._hook
        result: T = await writer.run(lambda: work(SqliteTx(connection, statements, clock, hook=hook)))
        return result

    async def read(self, work: Callable[[ReadTx], T]) -> T:
        """Run ``work`` on a reader thread, on one snapshot."""
        return await self._readers.run(lambda: self._read(work))

    def _read(self, work: Callable[[ReadTx], T]) -> T:
        try:
            connection = self._reader()
            connection.execute("BEGIN")
            try:
                guard = self._guard(self._pace.monotonic())
                return work(SqliteTx(connection, self._statements, self._clock, hook=self._hook, guard=guard))
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except apsw.Error as error:
            raise translate(error) from error

    def _guard(self, began_at: Micros) -> Callable[[], None]:
        def refuse_if_too_long() -> None:
            # A snapshot prevents the log from being emptied. Only then must a slow read end.
            if self._pace.monotonic() - began_at > READ_LIMIT and self._log_bytes() > LOG_BYTES_MAX:
                raise StoreUnavailable(
                    "This read went on for over a second while the store is being written; ask for less."
                )

        return refuse_if_too_long

    def _log_bytes(self) -> int:
        return self._path.with_name(f"{self._path.name}-wal").stat().st_size

    async def discard_index(self) -> None:
        """Empty the index file, whatever it contains."""
        connection = self._index_connection

        def empty_index() -> None:
            connection.execute("DETACH store")
            try:
                reset_index(connection)
            finally:
                self._attach_store(connection)

        await self._index_writer.run(empty_index, alone=True)

    @property
    def change_no(self) -> int:
        """The number of commits noticed so far."""
        return self._changes.number

    async def changed(self, *, since: int, timeout_seconds: float, topic: Topic | None = None) -> bool:
        """Wait for a commit of this process, or of another one, which is looked for every 100 ms."""
        if self._closed:
            raise closed()
        return await self._changes.wait(since, timeout_seconds, topic=topic)

    def _watch(self) -> None:
        """Notice commits of other processes while a task waits for one."""
        connection = self._watch_connection
        version = connection.pragma("data_version")
        while not self._closed:
            if not self._changes.watched:
                self._kick.wait()
            self._kick.clear()
            # Each waiter sets the event. Without this pause, each commit of our own would be noticed twice.
            self._stopped.wait(WATCH_SECONDS)
            seen, version = version, connection.pragma("data_version")
            if version != seen:
                self._changes.note()

    async def close(self) -> None:
        """Finish queued writes, then close both files."""
        if not self._closed:
            await run_elsewhere(self._stop)

    def _stop(self) -> None:
        self._writer.stop()
        self._index_writer.stop()
        self._readers.close()
        self._closed = True
        self._kick.set()
        self._stopped.set()
        self._watcher.join()
        self._changes.note()
        self._close_connections()

    def _close_connections(self) -> None:
        for connection in reversed(self._connections):
            connection.close()
