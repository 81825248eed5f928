"""A SQLite store in memory, without threads: every call has ended when it returns, which makes simulations fast.

All writes are savepoints inside one transaction that never commits. So a rollback empties the store, and the next
world reuses the prepared statements.

It runs the same statements through the same ``SqliteTx`` as the real store. Other tests cover the effects of disks
and other processes on a real store.
"""

from collections.abc import Callable
from functools import cache

import apsw

from keryx.clock import Clock
from keryx.errors import StoreUnavailable
from keryx.store.database import Database, Hook, ReadTx, T, Tx
from keryx.store.migrate import migrate_sqlite, search_schema
from keryx.store.sqlite_tx import SqliteTx
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
        """Roll back all writes."""
        self._connection.execute("ROLLBACK")
        self._connection.execute("BEGIN")

    async def write(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` in one transaction."""
        try:
            with self._connection:  # a savepoint, rolled back on an exception
                result = work(self._tx())
        except apsw.Error as error:
            raise translate(error) from error
        return result

    async def read(self, work: Callable[[ReadTx], T]) -> T:
        """Run ``work``; nothing else runs meanwhile."""
        return work(self._tx())

    def _tx(self) -> SqliteTx:
        return SqliteTx(self._connection, self._statements, self._clock, hook=self._hook)

    async def write_index(self, work: Callable[[Tx], T]) -> T:  # noqa: ARG002 - inherited signature
        """Refuse: a store in memory has no search index."""
        raise StoreUnavailable("a store in memory has no index")

    async def discard_index(self) -> None:
        """Refuse: a store in memory has no search index."""
        raise StoreUnavailable("a store in memory has no index")

    @property
    def change_no(self) -> int:
        """Unused: simulated processes count commits themselves."""
        return 0

    async def changed(self, *, since: int, timeout_seconds: float, topic: Topic | None = None) -> bool:  # noqa: ARG002
        """Refuse: unused too."""
        raise StoreUnavailable("a store in memory cannot be waited for")

    async def close(self) -> None:
        """Close the store."""
        self._connection.close()


@cache
def _empty_store() -> bytes:
    """Return an empty store with the current schema, including the tables of the search index."""
    connection = apsw.Connection(":memory:")
    migrate_sqlite(connection, now=0)
    for statement in search_schema("sqlite"):
        connection.execute(statement)
    return connection.serialize("main")
