"""The one thread that writes a SQLite file, with group commit.

Functions that wait together share one ``COMMIT``; when one fails, they are run again, each in a savepoint of its own,
so that it takes back only what it did itself. Nobody learns of success before the commit that holds it is durable.
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
from keryx.store.waiting import Pending, carried, closed, wake_all

BATCH_MAX = 64
BATCH_MICROS: Micros = 5_000
GATHER_ROUNDS = 8
"""How often at most a loop goes round, while that brings more jobs, before the thread is called."""
LOCK_WAIT: Micros = 30 * SECOND
CHECKPOINT_PAGES = 1_000
FAIR_WINDOW: Micros = 25_000
FAIR_HELD: Micros = 20_000
QUICK_MICROS: Micros = 600
"""A disk that committed in less may be waited for on the spot, and never for longer."""


class Job(Pending[Any]):
    """One function on its way through the writer."""

    __slots__ = ("alone",)

    def __init__(self, work: Callable[[], Any], *, alone: bool) -> None:
        super().__init__(work)
        self.alone = alone

    def run(self) -> None:
        """Do the work and keep what came of it, whatever that is: the caller is told, not this thread."""
        self.error = None
        try:
            self.result = self.work()
        except BaseException as error:  # noqa: BLE001 - carried to the caller, who raises it
            self.error = translate(error)


class Writer:
    """Owns a writing connection and the thread it lives on."""

    def __init__(
        self,
        connection: apsw.Connection,
        clock: Clock,
        *,
        name: str,
        on_commit: Callable[[], Sequence[asyncio.Future[None]]] = tuple,
    ) -> None:
        """Start the thread; ``on_commit`` returns who else is to be woken with those whose jobs are done."""
        self._connection = connection
        self._log_pages = 0
        self._clock = clock
        self._on_commit = on_commit
        self._jobs: deque[Job] = deque()
        self._calls: SimpleQueue[None] = SimpleQueue()
        """One for every time that somebody says there are jobs, or that there will be no more."""
        self._gathered: dict[asyncio.AbstractEventLoop, list[Job]] = {}
        """What each loop is about to bring; the thread knows nothing of it yet."""
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
        """Run ``work`` and return its result once that is durable; ``alone`` runs it in no transaction at all."""
        job = Job(work, alone=alone)
        # Looking and queueing are one step, or a job could arrive behind the end and never be answered.
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

    async def _bring(self, loop: asyncio.AbstractEventLoop, gathered: list[Job]) -> None:
        """Give the thread its jobs once the loop's other tasks have added theirs.

        Not at once: they would get commits of their own, and while both threads have something to do, the interpreter
        changes hands at every statement.
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
                # Whoever stopped the thread meanwhile has given it the jobs.
                self._jobs.extend(self._gathered.pop(loop, ()))
            self._calls.put(None)

    def _ended_soon(self, job: Job) -> bool:
        """Wait on the spot for a commit that nobody shares, on a disk that is quick; say whether it came.

        Waking an event loop takes about as long as such a commit.
        """
        is_quick = self._under_way == 1 and self._last_took < QUICK_MICROS
        return is_quick and job.ends_within(QUICK_MICROS / SECOND)

    def stop(self) -> None:
        """Finish what is queued and end the thread."""
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

    def _run_alone(self, job: Job) -> list[Job]:
        job.run()
        return [job]

    def _commit_together(self, first: Job) -> list[Job]:
        batch = [first]
        try:
            self._begin()
        except StoreError as error:
            return self._refuse(first, error)
        started_at = self._clock.monotonic()
        first.run()
        if first.error is not None:
            # It is alone in the transaction, so it needs no savepoint to be taken back by itself.
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

    def _next(self) -> Job | None:
        """Return the next job that may share the commit, if one is waiting; nobody else takes any."""
        return self._jobs.popleft() if self._jobs and not self._jobs[0].alone else None

    def _run_again_apart(self, batch: list[Job]) -> None:
        """One of the jobs failed: run them all again, each in a savepoint, so that only its own work is taken back.

        Most batches have no such job, and would pay for the savepoints with a twentieth of their time.
        """
        self._roll_back()
        self._connection.execute("BEGIN IMMEDIATE")
        for job in batch:
            self._attempt(job)

    def _attempt(self, job: Job) -> None:
        """Run a job in its savepoint; raises the driver's error where that takes the whole transaction with it."""
        connection = self._connection
        connection.execute("SAVEPOINT job")
        job.run()
        if job.error is not None:
            # After a full disk or an I/O error there is no savepoint left to go back to, and this says so.
            connection.execute("ROLLBACK TO job")
        connection.execute("RELEASE job")

    def _commit_one_by_one(self, batch: list[Job]) -> list[Job]:
        """The whole transaction was lost (full disk, I/O error): let each function succeed or fail by itself."""
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

    def _refuse(self, first: Job, error: StoreError) -> list[Job]:
        """The lock was not to be had: whoever waits by now has waited long enough, and is told so, too."""
        batch = [first]
        while (job := self._next()) is not None:
            batch.append(job)
        for job in batch:
            job.error = type(error)(*error.args)
        return batch

    def _begin(self) -> None:
        # SQLite's own busy handler backs off to 100 ms and starves; short waits with jitter do not.
        give_up_at = self._clock.monotonic() + LOCK_WAIT
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except apsw.BusyError:
                now = self._clock.monotonic()
                if now >= give_up_at:
                    raise StoreUnavailable(
                        "Another program has kept the store locked for 30 seconds; nothing was written. "
                        "See which one has the file open, and try again."
                    ) from None
                self._pause.wait((500 + now % 1500) / SECOND)
            except apsw.Error as error:
                raise translate(error) from error
            else:
                return

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _end(self, batch: list[Job]) -> None:
        # Counted first, so that whoever is told of a commit finds it counted.
        sleepers = list(self._on_commit())
        with self._lock:
            self._under_way -= len(batch)
        ended = (job.end() for job in batch)
        sleepers += (outcome for outcome in ended if outcome is not None)
        wake_all(sleepers)

    def _empty_log(self) -> None:
        """Copy a log that has grown into the file, so that it begins anew: after the answers, and by the writer itself.

        Beside a writer that goes on, a copy is never complete, the log never begins anew, and a log that still grows
        costs every commit a second wait for the disk.
        """
        written, _ = self._connection.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE, reset=True)
        self._log_pages += written
        if self._log_pages < CHECKPOINT_PAGES:
            return
        self._log_pages = 0
        try:
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error:
            # Another process is at it, or the disk is full: everything is in the log, and the next commits ask again.
            return

    def _be_fair(self) -> None:
        """Leave other processes a moment after holding the lock nearly all the time."""
        now = self._clock.monotonic()
        if now - self._window_from < FAIR_WINDOW:
            return
        if self._held >= FAIR_HELD:
            self._pause.wait(0.001)
        self._window_from, self._held = now, 0


def translate(error: BaseException) -> BaseException:
    """Turn a driver's error into ours; leave every other error as it is, as far as a task can be given it."""
    if not isinstance(error, apsw.Error):
        return carried(error)
    ours: KeryxError
    if isinstance(error, apsw.TooBigError):
        ours = InvalidValue(f"The database cannot hold or read this value: {error}")
    elif isinstance(
        error, apsw.FullError | apsw.IOError | apsw.BusyError | apsw.CantOpenError | apsw.ReadOnlyError
    ):
        ours = StoreUnavailable(
            f"The store could not be read or written ({error}); nothing of this was stored. "
            "See that the disk has space and the file may be written, then try again."
        )
    elif isinstance(error, apsw.CorruptError | apsw.NotADBError):
        ours = StoreCorrupt(f"The store is damaged or not a database ({error}). Restore the last backup.")
    else:
        ours = StoreError(f"The database refused a statement: {error}")
    ours.__cause__ = error
    return ours
