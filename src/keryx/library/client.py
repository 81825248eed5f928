"""The library for async programs: ``keryx.open`` and what it gives."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from keryx.clock import Clock
from keryx.ids import Ids
from keryx.library.changing import Changing
from keryx.library.exchange import Exchange
from keryx.library.indexing import Indexer
from keryx.library.reading import Reading
from keryx.store.opening import open_database
from keryx.transactions.program_session import enter_store


class Keryx(Reading, Changing, Exchange):
    """An open store, seen and changed on behalf of one person; any number of tasks may use it at once."""


@asynccontextmanager
async def open(  # noqa: A001 - said as `keryx.open`
    address: str | Path, *, person: int | None = None, clock: Clock | None = None, ids: Ids | None = None
) -> AsyncIterator[Keryx]:
    """Open ``sqlite:///path``, a bare path or ``postgresql://…``, making the store where there is none.

    ``person`` is the id of whom to act for; without it, the owner. ``clock`` and ``ids`` are for simulations.
    """
    database = await asyncio.to_thread(open_database, address, clock=clock)
    try:
        actor = await database.write(lambda tx: enter_store(tx, person_id=person))
        indexer = Indexer(database, address)
        try:
            yield Keryx(database, actor, ids=ids or Ids(), indexer=indexer)
        finally:
            await indexer.stop()
    finally:
        await database.close()
