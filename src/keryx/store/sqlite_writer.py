"""The only thread that writes a SQLite file, with group commit.

Functions that wait together share one ``COMMIT``. If one fails, all run again, each in its own savepoint, so that
the failed function undoes only its own writes. A caller learns of success only after its commit is durable.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

import apsw

from keryx.clock import SECOND, Clock, Micros
from keryx.errors import InvalidValue, KeryxError, StoreCorrupt, StoreError, StoreUnavailable
from keryx.store.waiting import PendingWork, closed, safe_for_future, wake_all

BATCH_MAX = 64
BATCH_MICROS: Micros = 5_000
GATHER_ROUNDS = 8
"""The maximum number of loop rounds that gather more jobs before the thread is called."""
LOCK_WAIT: Micros = 30 * SECOND
CHECKPOINT_PAGES = 1_000
FAIR_WINDOW: Micros = 25_000
FAIR_HELD: Micros = 20_000
QUICK_MICROS: Micros = 600
"""If the last commit took less, the caller blocks for the next one, for at most this time."""


class QueuedWrite(PendingWork[Any]):
    """One function for the writer."""

    __slots__ = ("alone",)

    def __init__(self, work: Callable[[], Any], *, alone: bool) -> None:
        super().__init__(work, translate=translate)
        self.alone = alone


class Writer:
    """Owns a writing connection and the thread that uses it."""

    def __init__(
        self,
        connection: apsw.Connection,
        clock: Clock,
        *,
        name: str,
        on_commit: Callable[[], Sequence[asyncio.Future[None]]] = tuple,
    ) -> None:
        """Start the thread; ``on_commit`` returns the futures to wake along with the callers of finished jobs."""
        self._connection = connection
        self._log_pages = 0
        self._clock = clock
        self._on_commit = on_commit
        self._jobs: deque[QueuedWrite] = deque()
        self._calls: SimpleQueue[None] = SimpleQueue()
        """One item for each call of the thread: new jobs, or the stop."""
        self._gathered: dict[asyncio.AbstractEventLoop, list[QueuedWrite]] = {}
        """The jobs that each loop gathers before it hands them to the thread."""
        self._lock = threading.Lock()
        self._pause = threading.Event()
        self._stopping = False
        self._under_way = 0
        self._last_took: Micros = QUICK_MICROS
        self._window_from: Micros = 0
        self._held: Micros = 0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def run(self, work: Callable[[], Any], *, alone: bool = False) -> Any:
        """Run ``work`` and return its result once durable; ``alone`` runs it outside of any transaction."""
        job = QueuedWrite(work, alone=alone)
        # Check and queue under one lock, or a job could arrive after the stop and never get a result.
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._stopping:
                raise closed()
            self._under_way += 1
            gathered = self._gathered.setdefault(loop, [])
            gathered.append(job)
        try:
            if len(gathered) == 1:
                await self._bring(loop, gathered)
            if not self._ended_soon(job):
                await job.ended()
        except asyncio.CancelledError:
            await job.ended()
            raise
        return job.take()

    async def _bring(self, loop: asyncio.AbstractEventLoop, gathered: list[QueuedWrite]) -> None:
        """Hand the jobs to the thread after the loop's other tasks have added theirs.

        If handed over at once, the other jobs would get separate commits. While both threads have work, the
        interpreter switches threads at every statement.
        """
        seen = 0
        try:
            for _ in range(GATHER_ROUNDS):
                await asyncio.sleep(0)
                if len(gathered) == seen:
                    break
                seen = len(gathered)
        finally:
            with self._lock:
                # If the writer was stopped meanwhile, ``stop`` has handed over the jobs.
                self._jobs.extend(self._gathered.pop(loop, ()))
            self._calls.put(None)

    def _ended_soon(self, job: QueuedWrite) -> bool:
        """Block for the commit if the job is the only one and the disk is fast; return whether the job has ended.

        An event loop needs about as long to wake as such a commit takes.
        """
        is_quick = self._under_way == 1 and self._last_took < QUICK_MICROS
        return is_quick and job.ends_within(QUICK_MICROS / SECOND)

    def stop(self) -> None:
        """Finish the queued jobs and end the thread."""
        with self._lock:
            self._stopping = True
            for gathered in self._gathered.values():
                self._jobs.extend(gathered)
            self._gathered.clear()
        self._calls.put(None)
        self._thread.join()

    def _run(self) -> None:
        while self._jobs or not self._stopping:
            if not self._jobs:
                self._calls.get()
                continue
            job = self._jobs.popleft()
            batch = self._run_alone(job) if job.alone else self._commit_together(job)
            self._end(batch)
            self._empty_log()
            self._be_fair()

    def _run_alone(self, job: QueuedWrite) -> list[QueuedWrite]:
        job.run()
        return [job]

    def _commit_together(self, first: QueuedWrite) -> list[QueuedWrite]:
        batch = [first]
        try:
            self._begin()
        except StoreError as error:
            return self._refuse(first, error)
        started_at = self._clock.monotonic()
        first.run()
        if first.error is not None:
            # The job is alone in the transaction, so a rollback undoes only its writes.
            self._roll_back()
            return batch
        try:
            while len(batch) < BATCH_MAX and self._clock.monotonic() - started_at < BATCH_MICROS:
                job = self._next()
                if job is None:
                    break
                batch.append(job)
                job.run()
                if job.error is not None:
                    self._run_again_apart(batch)
                    break
            self._connection.execute("COMMIT")
        except apsw.Error:
            return self._commit_one_by_one(batch)
        self._last_took = self._clock.monotonic() - started_at
        self._held += self._last_took
        return batch

    def _next(self) -> QueuedWrite | None:
        """Return the next waiting job that may share the commit, or None; only this thread takes jobs."""
        return self._jobs.popleft() if self._jobs and not self._jobs[0].alone else None

    def _run_again_apart(self, batch: list[QueuedWrite]) -> None:
        """Run all jobs again after one failed, each in a savepoint, so that only the failed job's writes are undone.

        Most batches contain no failing job; savepoints would cost them a twentieth of their time.
        """
        self._roll_back()
        self._connection.execute("BEGIN IMMEDIATE")
        for job in batch:
            self._attempt(job)

    def _attempt(self, job: QueuedWrite) -> None:
        """Run a job in its savepoint; raise the driver's error if the whole transaction is lost."""
        connection = self._connection
        connection.execute("SAVEPOINT job")
        job.run()
        if job.error is not None:
            # After a full disk or an I/O error the savepoint is gone, and this statement raises.
            connection.execute("ROLLBACK TO job")
        connection.execute("RELEASE job")

    def _commit_one_by_one(self, batch: list[QueuedWrite]) -> list[QueuedWrite]:
        """Run each job in its own transaction after the shared one was lost (full disk, I/O error)."""
        self._roll_back()
        for job in batch:
            try:
                self._begin()
                job.run()
                if job.error is None:
                    self._connection.execute("COMMIT")
            except (apsw.Error, StoreError) as error:
                job.error = translate(error)
            self._roll_back()
        return batch

    def _refuse(self, first: QueuedWrite, error: StoreError) -> list[QueuedWrite]:
        """Fail all waiting jobs with ``error`` after the lock was not free in time: they have waited long enough."""
        batch = [first]
        while (job := self._next()) is not None:
            batch.append(job)
        for job in batch:
            job.error = type(error)(*error.args)
        return batch

    def _begin(self) -> None:
        # SQLite's own busy handler backs off to 100 ms and starves; short waits with jitter do not starve.
        give_up_at = self._clock.monotonic() + LOCK_WAIT
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except apsw.BusyError:
                now = self._clock.monotonic()
                if now >= give_up_at:
                    raise StoreUnavailable(
                        "Another program has kept the store locked for 30 seconds; nothing was written. "
                        "Find the program that has the file open, then try again."
                    ) from None
                self._pause.wait((500 + now % 1500) / SECOND)
            except apsw.Error as error:
                raise translate(error) from error
            else:
                return

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _end(self, batch: list[QueuedWrite]) -> None:
        # Count the commit before waking tasks, so that a woken task finds it counted.
        sleepers = list(self._on_commit())
        with self._lock:
            self._under_way -= len(batch)
        ended = (job.end() for job in batch)
        sleepers += (outcome for outcome in ended if outcome is not None)
        wake_all(sleepers)

    def _empty_log(self) -> None:
        """Copy a long write-ahead log into the file, so that the log restarts; the writer does this after its answers.

        While the writer continues, a copy by another thread is never complete and the log never restarts. A growing
        log costs every commit a second wait for the disk.
        """
        written, _ = self._connection.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE, reset=True)
        self._log_pages += written
        if self._log_pages < CHECKPOINT_PAGES:
            return
        self._log_pages = 0
        try:
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error:
            # Another process copies, or the disk is full: all data is in the log, and a later commit tries again.
            return

    def _be_fair(self) -> None:
        """Pause for other processes after holding the lock nearly all the time."""
        now = self._clock.monotonic()
        if now - self._window_from < FAIR_WINDOW:
            return
        if self._held >= FAIR_HELD:
            self._pause.wait(0.001)
        self._window_from, self._held = now, 0


def translate(error: BaseException) -> BaseException:
    """Return our exception for a driver's error, and every other error unchanged if a future accepts it."""
    if not isinstance(error, apsw.Error):
        return safe_for_future(error)
    ours: KeryxError
    if isinstance(error, apsw.TooBigError):
        ours = InvalidValue(f"The database cannot hold or read this value: {error}")
    elif isinstance(
        error, apsw.FullError | apsw.IOError | apsw.BusyError | apsw.CantOpenError | apsw.ReadOnlyError
    ):
        ours = StoreUnavailable(
            f"The store could not be read or written ({error}); nothing of this was stored. "
            "Check that the disk has space and the file is writable, then try again."
        )
    elif isinstance(error, apsw.CorruptError | apsw.NotADBError):
        ours = StoreCorrupt(f"The store is damaged or not a database ({error}). Restore the last backup.")
    else:
        ours = StoreError(f"The database refused a statement: {error}")
    ours.__cause__ = error
    return ours
