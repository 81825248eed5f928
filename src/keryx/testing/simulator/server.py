"""A PostgreSQL store without threads: every call has ended when it returns.

A simulated world makes one call at a time and stands still meanwhile. To hand each call to a thread and back took as
long as the server's work.
"""

from collections.abc import Callable

from keryx.store.database import ReadTx, T, Tx
from keryx.store.postgres import PostgresDatabase


class InlinePostgres(PostgresDatabase):
    """The real store without its threads and read snapshots."""

    async def write(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` in one transaction, with retries."""
        return self._retries.run(work, read_only=False)

    async def read(self, work: Callable[[ReadTx], T]) -> T:
        """Run ``work`` without a snapshot: nothing else runs meanwhile."""
        with self._pool.connection() as connection:
            return work(self._retries.make_tx(connection, server_now=0))
