"""Keeps the search index up to date behind the writes.

Writes only leave a note. Once they pause, a task indexes in bounded steps on a thread; when much has piled up, a
process of its own does, so that writes keep the interpreter to themselves. Whatever happens to the index, no write
fails or waits for it, and searches scan the newest of what it does not cover yet.
"""

import asyncio
import logging
import time
from pathlib import Path
from typing import Final

from keryx.errors import StoreCorrupt, StoreError, StoreUnavailable
from keryx.library.index_helper import IndexHelper
from keryx.store.database import Database, Tx
from keryx.transactions.index_messages import IndexStep, index_step

QUIET_SECONDS: Final = 0.05
"""How long writes must pause before the index is touched."""
ROWS_WAITING_MAX: Final = 1_000
"""So many new rows are not kept waiting for a pause: they are work for a process of its own."""
IDLE_SECONDS: Final = 30.0
"""How long that process is kept for the next time."""

_log = logging.getLogger(__name__)


class Indexer:
    """The task that indexes; made and used in one event loop."""

    def __init__(
        self, database: Database, address: str | Path, *, helper_rows: int = ROWS_WAITING_MAX
    ) -> None:
        self._database = database
        self._address = address
        self._helper_rows = helper_rows
        self._helper: IndexHelper | None = None
        self._helper_goes_at: float | None = None
        """When the helper has not been needed for long enough, however often somebody commits."""
        self._can_help = True
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
        await self._dismiss_helper()

    def _look(self, written_before: int) -> None:
        """Start if nothing was written since the last look or enough has piled up, else look again."""
        self._timer = None
        if self._written == written_before or self._written - self._seen >= self._helper_rows:
            self._due.set()
        else:
            self._timer = self._loop.call_later(QUIET_SECONDS, self._look, self._written)

    async def _run(self) -> None:
        while True:
            await self._wait_for_work()
            much = self._written - self._seen >= self._helper_rows
            self._seen = self._written
            waiting, self._waiting = self._waiting, []
            try:
                if not (much and await self._index_beside()):
                    await self._index_here()
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

    async def _wait_for_work(self) -> None:
        try:
            # Not ``wait_for``: before Python 3.12 it loses a cancellation that comes with what it waits for.
            async with asyncio.timeout_at(self._helper_goes_at):
                await self._due.wait()
        except TimeoutError:
            await self._dismiss_helper()
            await self._due.wait()
        self._due.clear()

    async def _index_here(self) -> None:
        while (await self._database.write_index(_step)).more:
            pass

    async def _index_beside(self) -> bool:
        """Index in the process of its own; False where there is none to be had, now or ever."""
        if not self._can_help:
            return False
        try:
            if self._helper is None:
                self._helper = await IndexHelper.start(self._address)
            await self._helper.catch_up()
            self._helper_goes_at = self._loop.time() + IDLE_SECONDS
        except StoreUnavailable as error:
            _log.warning("Indexing goes on in this process: %s", error)
            self._can_help = False
            await self._dismiss_helper()
            return False
        return True

    async def _dismiss_helper(self) -> None:
        helper, self._helper, self._helper_goes_at = self._helper, None, None
        if helper is not None:
            await helper.stop()


def _step(tx: Tx) -> IndexStep:
    return index_step(tx, breathe=_breathe)


def _breathe() -> None:
    time.sleep(0)  # Gives the interpreter away, so that an append never waits for a whole slice.


def _fail(waiting: list[asyncio.Future[None]], error: StoreError) -> None:
    for done in waiting:
        if not done.done():
            done.set_exception(error)
