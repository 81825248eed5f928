"""``keryx.open``: open a store for an async program."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from keryx.clock import Clock
from keryx.core.conversations.transactions.program_sessions import enter_store
from keryx.core.search.indexing.indexer import Indexer
from keryx.ids import Ids
from keryx.library.client import Keryx
from keryx.store.opening import open_database


@asynccontextmanager
async def open(  # noqa: A001 - said as `keryx.open`
    address: str | Path, *, person: int | None = None, clock: Clock | None = None, ids: Ids | None = None
) -> AsyncIterator[Keryx]:
    """Open ``sqlite:///path``, a bare path or ``postgresql://…``. A store that does not exist is created.

    ``person`` is the id of the person to act for (None: the owner). ``clock`` and ``ids`` are for simulations.
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
