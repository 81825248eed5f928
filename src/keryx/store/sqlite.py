"""The embedded store: one SQLite file, and a second one for the disposable search index.

One thread writes messages, one the index, a few read, and one looks for other processes' commits.
Nothing else in the process may open the files: closing a foreign descriptor would drop SQLite's locks.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw

from keryx.clock import SECOND, Clock, Micros, SystemClock
from keryx.errors import StoreCorrupt, StoreError, StoreUnavailable, StoreUnsafe
from keryx.store.database import Database, Hook, ReadTx, Row, T, Tx, noting
from keryx.store.filesystem import refuse_network
from keryx.store.migrate import LOCK_WAIT_MS, migrate_sqlite, search_schema
from keryx.store.sqlite_writer import Writer, translate
from keryx.store.statements import Statement, Topic, load
from keryx.store.waiting import Changes, Threads, closed, finish, on_new_thread

SAFE_SQLITE = (3, 51, 3)
"""Older libraries can damage a WAL file when two connections write and checkpoint at the same time."""
READERS = 4
STATEMENTS_KEPT = 512
"""Prepared statements of a connection. Every execution takes one of the driver's places anew, so a statement is kept
only if it comes again within so many; the writes of a turn are some seventy, and those of several come by kind."""
READ_MOMENT_SECONDS = 0.0003
READER_WAIT_MS = 2_000
LOG_ATTEMPTS_MAX = 200
LOG_PAUSE_SECONDS = 0.01
LOG_BYTES_MAX = 64 * 1024 * 1024
READ_LIMIT: Micros = 1 * SECOND
WATCH_SECONDS = 0.1


class SqliteTx(Tx):
    """A transaction on one SQLite connection."""

    def __init__(
        self,
        connection: apsw.Connection,
        statements: Mapping[str, Statement],
        clock: Clock,
        *,
        hook: Hook | None = None,
        guard: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(statements, hook)
        self._connection = connection
        self._clock = clock
        self._guard = guard
        self._now = clock.now()

    @property
    def now(self) -> Micros:
        """Wall time at which the function began."""
        return self._now

    @property
    def lease_now(self) -> Micros:
        """This machine's monotonic clock: every holder of this file is on this machine."""
        return self._clock.monotonic()

    @property
    def boot_id(self) -> str:
        """Which boot the monotonic clock counts from."""
        return self._clock.boot_id()

    def rows(self, name: str, /, **params: Any) -> list[Row]:
        """Run a named statement and return all its rows."""
        if self._guard is not None:
            self._guard()
        statement = self._statement(name, params)
        rows = self._connection.execute(statement.sql, params).fetchall()
        if statement.wakes and rows:
            self.wakes |= statement.wakes
        return rows

    def run(self, name: str, /, **params: Any) -> int:
        """Run a named statement and return how many rows it changed."""
        statement = self._statement(name, params)
        self._connection.execute(statement.sql, params)
        changed = self._connection.changes()
        if statement.wakes and changed:
            self.wakes |= statement.wakes
        return changed

    def run_many(self, name: str, /, many: Sequence[dict[str, Any]]) -> None:
        """Run a named statement once for each set of parameters."""
        if not many:
            return
        given: dict[str, Any] = {}
        statement = self._statement(name, given)
        self.wakes |= statement.wakes
        self._connection.executemany(statement.sql, ({**params, **given} for params in many))


class SqliteDatabase(Database):
    """A store in one file, shared by any number of processes on this machine."""

    dialect = "sqlite"

    def __init__(self, path: Path, *, clock: Clock, hook: Hook | None, vfs: str | None) -> None:
        self._path = path
        self._index_path = index_path(path)
        self._clock = clock
        # Pacing is about this machine, whatever time a simulator says it is.
        self._pace = SystemClock()
        self._hook = hook
        self._vfs = vfs
        self._statements = load("sqlite")
        self._kick = threading.Event()
        self._stopped = threading.Event()
        self._changes = Changes(on_wait=self._kick.set)
        self._wakes: set[Topic] = set()
        """What there may be to do by the batch that is being written; the writer's thread has it."""
        self._local = threading.local()
        self._connections: list[apsw.Connection] = []
        self._closed = False

    @classmethod
    def open(
        cls, path: Path, *, clock: Clock | None = None, hook: Hook | None = None, vfs: str | None = None
    ) -> "SqliteDatabase":
        """Open the store at ``path``, making or migrating it; blocks, so call it from a thread.

        ``vfs`` names a file layer registered with SQLite: where a disk's faults are planted.
        """
        check_version(apsw.sqlite_lib_version())
        refuse_network(path.parent)
        database = cls(path, clock=clock or SystemClock(), hook=hook, vfs=vfs)
        try:
            database._start()
        except apsw.Error as error:
            database._let_go()
            raise translate(error) from error
        except StoreError:
            database._let_go()
            raise
        return database

    def _start(self) -> None:
        _make_private(self._path)
        _make_private(self._index_path)
        self._write_connection = connection = self._connect(self._path, wait_ms=LOCK_WAIT_MS)
        _set_up(connection)
        migrate_sqlite(connection, now=self._clock.now())
        # From here on the writer waits in its own way.
        connection.set_busy_timeout(0)
        self._watch_connection = self._connect(self._path, wait_ms=READER_WAIT_MS)
        _set_up(self._watch_connection)
        self._index_connection = self._open_index()
        self._writer = Writer(connection, self._pace, name="keryx-writer", on_commit=self._count)
        self._index_writer = Writer(self._index_connection, self._pace, name="keryx-index")
        self._readers = Threads(READERS, name="keryx-reader", moment_seconds=READ_MOMENT_SECONDS)
        self._watcher = threading.Thread(target=self._watch, name="keryx-watcher", daemon=True)
        self._watcher.start()

    def _connect(self, path: Path, *, wait_ms: int) -> apsw.Connection:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
        connection = apsw.Connection(
            _uri(path), flags=flags, vfs=self._vfs, statementcachesize=STATEMENTS_KEPT
        )
        self._connections.append(connection)
        connection.set_busy_timeout(wait_ms)
        return connection

    def _open_index(self) -> apsw.Connection:
        """Open the index file for writing, with the messages beside it; an index that cannot be read is begun anew."""
        connection = self._connect(self._index_path, wait_ms=READER_WAIT_MS)
        try:
            _set_up_index(connection)
        except (apsw.CorruptError, apsw.NotADBError):
            _begin_anew(connection)
        self._attach_store(connection)
        return connection

    def _attach_store(self, connection: apsw.Connection) -> None:
        connection.execute("ATTACH ? AS store", (f"{_uri(self._path)}?mode=ro",))

    def _reader(self) -> apsw.Connection:
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._connect(self._path, wait_ms=READER_WAIT_MS)
            _set_up(connection)
            connection.execute("ATTACH ? AS search", (_uri(self._index_path),))
            connection.execute("PRAGMA query_only=ON")
            self._local.connection = connection
        return connection

    async def write(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` on the writer thread; return once its commit is on disk."""
        connection, statements, clock, hook = (
            self._write_connection,
            self._statements,
            self._clock,
            self._hook,
        )
        work = noting(work, self._wakes)
        result: T = await self._writer.run(lambda: work(SqliteTx(connection, statements, clock, hook=hook)))
        return result

    def _count(self) -> Sequence[asyncio.Future[None]]:
        woken = self._changes.count(self._wakes)
        self._wakes.clear()
        return woken

    async def write_index(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` on the index's own thread; an index found damaged is begun anew, and ``work`` run once more."""
        try:
            return await self._write_index(work)
        except StoreCorrupt:
            await self.discard_index()
            return await self._write_index(work)

    async def _write_index(self, work: Callable[[Tx], T]) -> T:
        connection, statements, clock, hook = (
            self._index_connection,
            self._statements,
            self._clock,
            self._hook,
        )
        result: T = await self._index_writer.run(
            lambda: work(SqliteTx(connection, statements, clock, hook=hook))
        )
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
        def refuse_if_in_the_way() -> None:
            # A snapshot keeps the log from being emptied: only then does a slow reader have to give way.
            if self._pace.monotonic() - began_at > READ_LIMIT and self._log_bytes() > LOG_BYTES_MAX:
                raise StoreUnavailable(
                    "This read went on for over a second while the store is being written; ask for less."
                )

        return refuse_if_in_the_way

    def _log_bytes(self) -> int:
        return self._path.with_name(f"{self._path.name}-wal").stat().st_size

    async def discard_index(self) -> None:
        """Empty the index file, whatever is in it."""
        connection = self._index_connection

        def begin_anew() -> None:
            connection.execute("DETACH store")
            try:
                _begin_anew(connection)
            finally:
                self._attach_store(connection)

        await self._index_writer.run(begin_anew, alone=True)

    @property
    def change_no(self) -> int:
        """How many commits were noticed so far."""
        return self._changes.number

    async def changed(self, *, since: int, timeout_seconds: float, topic: Topic | None = None) -> bool:
        """Wait for a commit of this process, or of another one noticed every 100 ms."""
        if self._closed:
            raise closed()
        return await self._changes.wait(since, timeout_seconds, topic=topic)

    def _watch(self) -> None:
        """Notice commits of other processes, while somebody waits for one."""
        connection = self._watch_connection
        version = connection.pragma("data_version")
        while not self._closed:
            if not self._changes.watched:
                self._kick.wait()
            self._kick.clear()
            # Everybody who waits kicks; without this pause, each commit of our own would be looked for and told twice.
            self._stopped.wait(WATCH_SECONDS)
            seen, version = version, connection.pragma("data_version")
            if version != seen:
                self._changes.note()

    async def close(self) -> None:
        """Finish queued writes, then let go of both files."""
        if not self._closed:
            await finish(self._stop, start=on_new_thread)

    def _stop(self) -> None:
        self._writer.stop()
        self._index_writer.stop()
        self._readers.close()
        self._closed = True
        self._kick.set()
        self._stopped.set()
        self._watcher.join()
        self._changes.note()
        self._let_go()

    def _let_go(self) -> None:
        for connection in reversed(self._connections):
            connection.close()


def index_path(path: Path) -> Path:
    """Where the search index of the store at ``path`` lives."""
    return path.with_name(f"{path.name}-search")


def check_version(version: str) -> None:
    """Raise ``StoreUnsafe`` for a SQLite library that can damage the file."""
    if tuple(int(part) for part in version.split(".")) < SAFE_SQLITE:
        raise StoreUnsafe(
            f"SQLite {version} can damage a shared file (fixed in {'.'.join(map(str, SAFE_SQLITE))}). "
            "Install a newer apsw: its wheels bring SQLite along."
        )


def _set_up(connection: apsw.Connection) -> None:
    # A plan stays what it is whatever is bound; without this, statements are planned again at every run.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    _keep_log(connection)
    for pragma in (
        "synchronous=FULL",
        "wal_autocheckpoint=0",
        "foreign_keys=ON",
        "trusted_schema=OFF",
        "temp_store=MEMORY",
        "cache_size=-16000",
        f"journal_size_limit={LOG_BYTES_MAX}",
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()


def _keep_log(connection: apsw.Connection) -> None:
    """Switch to a write-ahead log; of several who do so to a new file at once, all but one are told that it is busy.

    They are told at once, whatever the time-out says: each holds what the other waits for.
    """
    for _ in range(LOG_ATTEMPTS_MAX):
        try:
            connection.execute("PRAGMA journal_mode=WAL").fetchall()
        except apsw.BusyError:
            threading.Event().wait(LOG_PAUSE_SECONDS)
        else:
            return
    connection.execute("PRAGMA journal_mode=WAL").fetchall()


def _set_up_index(connection: apsw.Connection) -> None:
    """Make the index's tables; it may lose its last commits in a power cut."""
    _set_up(connection)
    connection.execute("PRAGMA synchronous=NORMAL")
    for statement in search_schema("sqlite"):
        connection.execute(statement)


def _begin_anew(connection: apsw.Connection) -> None:
    connection.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 1)
    connection.execute("VACUUM")
    connection.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 0)
    _set_up_index(connection)


def _uri(path: Path) -> str:
    return f"file:{quote(os.fsencode(path.resolve()))}"


def _make_private(path: Path) -> None:
    """Create the file readable by its owner alone; one that exists is not touched, or its locks would be dropped."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except OSError as error:
        raise StoreError(
            f"The store {path} cannot be opened: {error.strerror}. Name a file in a folder you may write to."
        ) from error
