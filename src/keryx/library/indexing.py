"""Keeps the search index up to date behind the writes.

Writes only leave a note; a task of its own works in bounded steps once they pause. Whatever happens to the index,
no write fails or waits for it, and searches scan what it does not cover yet.
"""

import asyncio
import logging
import time
from typing import Final

from keryx.errors import StoreCorrupt, StoreError
from keryx.store.database import Database, Tx
from keryx.transactions.index_messages import IndexStep, index_step

QUIET_SECONDS: Final = 0.05
"""How long writes must pause before the index is touched."""
ROWS_WAITING_MAX: Final = 200
"""So many new rows are indexed without a pause."""

_log = logging.getLogger(__name__)


class Indexer:
    """The task that indexes; made and used in one event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._loop = asyncio.get_running_loop()
        self._written = 0
        self._seen = 0
        self._timer: asyncio.TimerHandle | None = None
        self._due = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []
        # What an earlier program left undone comes first.
        self._due.set()
        self._task = self._loop.create_task(self._run(), name="keryx-indexer")

    def note(self, rows: int = 1) -> None:
        """Say that rows were written; costs next to nothing."""
        self._written += rows
        if self._timer is None:
            self._timer = self._loop.call_later(QUIET_SECONDS, self._look, self._written)

    async def caught_up(self) -> None:
        """Return once everything written before this call is in the index."""
        if self._task.done():
            raise StoreError("The search index is no longer kept up to date; open the store again.")
        done: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(done)
        self._due.set()
        await done

    async def stop(self) -> None:
        """Finish the step under way and end the task."""
        if self._timer is not None:
            self._timer.cancel()
        self._task.cancel()
        try:
            await self._task
        except asyncio.CancelledError:
            # Asked for; whoever still waits is told by the same word.
            for done in self._waiting:
                done.cancel()

    def _look(self, written_before: int) -> None:
        """Start if nothing was written since the last look or enough has piled up, else look again."""
        self._timer = None
        if self._written == written_before or self._written - self._seen >= ROWS_WAITING_MAX:
            self._due.set()
        else:
            self._timer = self._loop.call_later(QUIET_SECONDS, self._look, self._written)

    async def _run(self) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            self._seen = self._written
            waiting, self._waiting = self._waiting, []
            try:
                while (await self._database.write_index(_step)).more:
                    pass
            except StoreCorrupt:
                _log.warning("The search index is damaged; it is thrown away and built anew.")
                await self._database.discard_index()
                self._waiting += waiting
                self._due.set()
                continue
            except StoreError as error:
                # Another program may be at it, or the disk is full: the next write tries again.
                _log.warning("The search index could not be brought up to date: %s", error)
                _fail(waiting, error)
                continue
            for done in waiting:
                if not done.done():
                    done.set_result(None)


def _step(tx: Tx) -> IndexStep:
    return index_step(tx, breathe=_breathe)


def _breathe() -> None:
    time.sleep(0)  # Gives the interpreter away, so that an append never waits for a whole slice.


def _fail(waiting: list[asyncio.Future[None]], error: StoreError) -> None:
    for done in waiting:
        if not done.done():
            done.set_exception(error)
