"""A PostgreSQL store without threads: every call is done when it returns.

A simulated world makes one call at a time and stands still meanwhile; handing each of them to a thread and back took
as long as the server did.
"""

from collections.abc import Callable

from keryx.clock import Clock
from keryx.store.database import ReadTx, T, Tx
from keryx.store.postgres import PostgresDatabase, PostgresTx


class InlinePostgres(PostgresDatabase):
    """The real store, but for the threads it works on and the snapshots it reads from."""

    _clock: Clock

    async def write(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` in one transaction, again if it must be."""
        return self._with_retries(work, read_only=False)

    async def read(self, work: Callable[[ReadTx], T]) -> T:
        """Run ``work``; nothing else happens meanwhile, so it needs no snapshot."""
        with self._pool.connection() as connection:
            return work(
                PostgresTx(
                    connection, self._statements, now=self._clock.now(), clock=self._clock, hook=self._hook
                )
            )
