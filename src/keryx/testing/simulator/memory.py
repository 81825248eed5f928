"""A SQLite store in memory, without threads: every call is done when it returns, which makes a simulation quick.

Everything is written inside one transaction that never ends, and a write is a savepoint in it. So the store is emptied
by taking all back, and the next world finds every statement prepared.

It runs the same statements through the same ``SqliteTx`` as the real one; what a disk and other processes do to the
real one is tested with real ones.
"""

from collections.abc import Callable
from functools import cache

import apsw

from keryx.clock import Clock
from keryx.errors import StoreUnavailable
from keryx.store.database import Database, Hook, ReadTx, T, Tx
from keryx.store.migrate import migrate_sqlite, search_schema
from keryx.store.sqlite import SqliteTx
from keryx.store.sqlite_writer import translate
from keryx.store.statements import Topic, load


class MemoryDatabase(Database):
    """A store that lives as long as this object."""

    dialect = "sqlite"

    def __init__(self, *, clock: Clock, hook: Hook) -> None:
        self._clock = clock
        self._hook = hook
        self._statements = load("sqlite")
        self._connection = apsw.Connection(":memory:", statementcachesize=1_000)
        self._connection.deserialize("main", _empty_store())
        self._connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        self._connection.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 1)
        self._connection.execute("BEGIN")

    def empty(self) -> None:
        """Take back everything that was written."""
        self._connection.execute("ROLLBACK")
        self._connection.execute("BEGIN")

    async def write(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` in one transaction."""
        try:
            with self._connection:  # a savepoint, taken back if anything is raised
                result = work(self._tx())
        except apsw.Error as error:
            raise translate(error) from error
        return result

    async def read(self, work: Callable[[ReadTx], T]) -> T:
        """Run ``work``; nothing else happens meanwhile."""
        return work(self._tx())

    def _tx(self) -> SqliteTx:
        return SqliteTx(self._connection, self._statements, self._clock, hook=self._hook)

    async def write_index(self, work: Callable[[Tx], T]) -> T:  # noqa: ARG002 - as it is inherited
        """Refuse: nothing is indexed in memory."""
        raise StoreUnavailable("a store in memory has no index")

    async def discard_index(self) -> None:
        """Refuse: nothing is indexed in memory."""
        raise StoreUnavailable("a store in memory has no index")

    @property
    def change_no(self) -> int:
        """Never asked: simulated processes count commits themselves."""
        return 0

    async def changed(self, *, since: int, timeout_seconds: float, topic: Topic | None = None) -> bool:  # noqa: ARG002
        """Never asked either."""
        raise StoreUnavailable("nobody waits for a store in memory")

    async def close(self) -> None:
        """Let go of it."""
        self._connection.close()


@cache
def _empty_store() -> bytes:
    """Return a store with the current schema and nothing in it, the tables of its index among the others."""
    connection = apsw.Connection(":memory:")
    migrate_sqlite(connection, now=0)
    for statement in search_schema("sqlite"):
        connection.execute(statement)
    return connection.serialize("main")
