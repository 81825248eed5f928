"""``keryx.open``: open a store for an async program."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from keryx.clock import Clock
from keryx.config import Settings
from keryx.core.conversations.transactions.program_sessions import enter_store
from keryx.core.search.indexing.indexer import Indexer
from keryx.ids import Ids
from keryx.library.client import Keryx
from keryx.store.opening import open_database


@asynccontextmanager
async def open(  # noqa: A001 - said as `keryx.open`
    address: str | Path,
    *,
    person: int | None = None,
    profile: str | None = None,
    settings: Mapping[str, str | int | Sequence[str]] | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
) -> AsyncIterator[Keryx]:
    """Open ``sqlite:///path``, a bare path or ``postgresql://…``. A store that does not exist is created.

    ``person`` is the id of the person to act for (None: the owner). ``profile`` and ``settings`` (``scope.…``,
    ``reset.…``, ``timezone``) decide which session belongs to a chat. ``clock`` and ``ids`` are for simulations.
    """
    chosen = _settings(settings, profile)
    database = await asyncio.to_thread(open_database, address, clock=clock)
    try:
        actor = await database.write(lambda tx: enter_store(tx, person_id=person))
        indexer = Indexer(database, address)
        try:
            yield Keryx(database, actor, ids=ids or Ids(), indexer=indexer, settings=chosen)
        finally:
            await indexer.stop()
    finally:
        await database.close()


def _settings(given: Mapping[str, str | int | Sequence[str]] | None, profile: str | None) -> Settings:
    if not given and profile is None:
        return Settings()
    from keryx.config_load.program import settings_of_program  # noqa: PLC0415 - most programs give none

    return settings_of_program(given or {}, profile=profile)
