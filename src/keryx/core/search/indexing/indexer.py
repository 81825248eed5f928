"""Keeps the search index up to date behind the writes.

A write only notes that rows were added. Once writes pause, a task indexes in bounded steps on a thread. A large
backlog is indexed by a worker process, so that writes keep the interpreter to themselves. Whatever happens to the
index, no write fails or waits for it, and searches scan the newest rows that are not indexed yet.
"""

import asyncio
import logging
import time
from pathlib import Path
from typing import Final

from keryx.core.search.indexing.worker_process import IndexWorker
from keryx.core.search.transactions.index_messages import IndexStep, index_step
from keryx.errors import StoreCorrupt, StoreError, StoreUnavailable
from keryx.store.database import Database, Tx

QUIET_SECONDS: Final = 0.05
"""How long writes must pause before indexing begins."""
BACKLOG_MIN: Final = 1_000
"""With this many new rows, indexing does not wait for a pause, and uses a worker process."""
IDLE_SECONDS: Final = 30.0
"""How long an idle worker process is kept."""

_log = logging.getLogger(__name__)


class Indexer:
    """The task that indexes. It must be created and used in one event loop."""

    def __init__(self, database: Database, address: str | Path, *, backlog_min: int = BACKLOG_MIN) -> None:
        self._database = database
        self._address = address
        self._backlog_min = backlog_min
        self._worker: IndexWorker | None = None
        self._worker_stops_at: float | None = None
        """When the worker will have been idle for long enough, however many small writes come until then."""
        self._can_use_worker = True
        self._loop = asyncio.get_running_loop()
        self._written = 0
        self._seen = 0
        self._timer: asyncio.TimerHandle | None = None
        self._due = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []
        # An earlier program may have left rows to index.
        self._due.set()
        self._task = self._loop.create_task(self._run(), name="keryx-indexer")

    def note(self, rows: int = 1) -> None:
        """Note that rows were written; costs next to nothing."""
        self._written += rows
        if self._timer is None:
            self._timer = self._loop.call_later(QUIET_SECONDS, self._check_pause, self._written)

    async def caught_up(self) -> None:
        """Return once everything written before this call is in the index."""
        if self._task.done():
            raise StoreError("The search index is no longer kept up to date; open the store again.")
        done: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(done)
        self._due.set()
        await done

    async def stop(self) -> None:
        """Finish the current step and end the task."""
        if self._timer is not None:
            self._timer.cancel()
        self._task.cancel()
        try:
            await self._task
        except asyncio.CancelledError:
            # We asked for this. Calls that still wait are cancelled too.
            for done in self._waiting:
                done.cancel()
        await self._stop_worker()

    def _check_pause(self, written_before: int) -> None:
        """Start indexing if writes have paused or the backlog is large; otherwise check again later."""
        self._timer = None
        if self._written == written_before or self._written - self._seen >= self._backlog_min:
            self._due.set()
        else:
            self._timer = self._loop.call_later(QUIET_SECONDS, self._check_pause, self._written)

    async def _run(self) -> None:
        while True:
            await self._wait_for_work()
            is_large = self._written - self._seen >= self._backlog_min
            self._seen = self._written
            waiting, self._waiting = self._waiting, []
            try:
                if not (is_large and await self._index_in_worker()):
                    await self._index_here()
            except StoreCorrupt:
                _log.warning("The search index is damaged; it is discarded and rebuilt.")
                await self._database.discard_index()
                self._waiting += waiting
                self._due.set()
                continue
            except StoreError as error:
                # Another program may be indexing, or the disk is full: the next write tries again.
                _log.warning("The search index could not be brought up to date: %s", error)
                _fail(waiting, error)
                continue
            for done in waiting:
                if not done.done():
                    done.set_result(None)

    async def _wait_for_work(self) -> None:
        try:
            # Not ``wait_for``: before Python 3.12 it loses a cancellation that comes together with the result.
            async with asyncio.timeout_at(self._worker_stops_at):
                await self._due.wait()
        except TimeoutError:
            await self._stop_worker()
            await self._due.wait()
        self._due.clear()

    async def _index_here(self) -> None:
        while (await self._database.write_index(_step)).more:
            pass

    async def _index_in_worker(self) -> bool:
        """Index in the worker process. Return False if no worker can be used, now or later."""
        if not self._can_use_worker:
            return False
        try:
            if self._worker is None:
                self._worker = await IndexWorker.start(self._address)
            await self._worker.catch_up()
            self._worker_stops_at = self._loop.time() + IDLE_SECONDS
        except StoreUnavailable as error:
            _log.warning("Indexing continues in this process: %s", error)
            self._can_use_worker = False
            await self._stop_worker()
            return False
        return True

    async def _stop_worker(self) -> None:
        worker, self._worker, self._worker_stops_at = self._worker, None, None
        if worker is not None:
            await worker.stop()


def _step(tx: Tx) -> IndexStep:
    return index_step(tx, yield_control=_yield_control)


def _yield_control() -> None:
    time.sleep(0)  # Releases the interpreter, so that an append never waits for a whole time slice.


def _fail(waiting: list[asyncio.Future[None]], error: StoreError) -> None:
    for done in waiting:
        if not done.done():
            done.set_exception(error)
