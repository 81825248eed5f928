"""Wait for work on other threads: a task never leaves before the outcome is known, and never blocks the loop.

Several event loops may use these functions and classes at once.
"""

import asyncio
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from queue import SimpleQueue
from typing import Any, Generic, TypeVar, cast

from keryx.errors import StoreUnavailable
from keryx.store.statements import TOPICS, Topic

T = TypeVar("T")

QUICK_IN_A_ROW = 8
"""After this many calls without a sleep, the loop's other tasks get a turn."""


class Outcome(asyncio.Future[T]):
    """The future outcome of work: a task that awaits it is cancelled only after the outcome is known."""

    def cancel(self, msg: Any = None) -> bool:  # noqa: ARG002 - inherited signature
        """Refuse: the awaiting task is cancelled when it wakes."""
        return False


async def run_elsewhere(work: Callable[[], T]) -> T:
    """Run ``work`` on a thread of its own; return the result, or raise the exception."""
    loop = asyncio.get_running_loop()
    outcome: Outcome[T] = Outcome(loop=loop)

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - the caller raises it
            call_in_loop(loop, outcome.set_exception, safe_for_future(error))
        else:
            call_in_loop(loop, outcome.set_result, result)

    threading.Thread(target=run).start()
    return await outcome


def call_in_loop(loop: asyncio.AbstractEventLoop, callback: Callable[[T], object], value: T) -> None:
    """Run the callback in the loop's thread, unless the loop is closed."""
    try:
        loop.call_soon_threadsafe(callback, value)
    except RuntimeError:
        # The loop was closed.
        return


def wake_all(sleepers: Iterable[asyncio.Future[None]]) -> None:
    """Wake the sleepers in their loops, from any thread; one call for each loop, because a call costs a loop round."""
    by_loop: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for future in sleepers:
        by_loop.setdefault(future.get_loop(), []).append(future)
    for loop, futures in by_loop.items():
        call_in_loop(loop, wake, futures)


def wake(futures: Sequence[asyncio.Future[None]]) -> None:
    """Complete the futures that are not done yet."""
    for future in futures:
        if not future.done():
            future.set_result(None)


def safe_for_future(error: BaseException) -> BaseException:
    """Return an exception that a future accepts: StopIteration, which a future refuses, becomes a RuntimeError."""
    if not isinstance(error, StopIteration):
        return error
    instead = RuntimeError("A function given to the store raised StopIteration.")
    instead.__cause__ = error
    return instead


def closed() -> StoreUnavailable:
    """Return the exception for a call after the store was closed."""
    return StoreUnavailable("This store was closed; open it again.")


class PendingWork(Generic[T]):
    """Work for another thread: the caller blocks for a moment, or sleeps until the work has ended."""

    __slots__ = ("_ended", "_lock", "_outcome", "_translate", "error", "result", "work")

    def __init__(
        self, work: Callable[[], T], *, translate: Callable[[BaseException], BaseException] | None = None
    ) -> None:
        self.work = work
        self._translate = translate or safe_for_future
        self.result: T | None = None
        self.error: BaseException | None = None
        self._ended = threading.Lock()
        self._ended.acquire()
        self._lock = threading.Lock()
        self._outcome: Outcome[None] | None = None

    def run(self) -> None:
        """Run the work and keep its result or its exception, which the caller raises, not this thread."""
        self.error = None
        try:
            self.result = self.work()
        except BaseException as error:  # noqa: BLE001 - the caller raises it
            self.error = self._translate(error)

    def end(self) -> "Outcome[None] | None":
        """Mark result or error as final; return the future to wake if the caller sleeps."""
        with self._lock:
            self._ended.release()
            return self._outcome

    def ends_within(self, seconds: float) -> bool:
        """Block until the work ends, up to ``seconds``; return whether the work has ended."""
        return self._ended.acquire(timeout=seconds)

    async def ended(self) -> None:
        """Sleep until the work has ended."""
        outcome: Outcome[None] = Outcome(loop=asyncio.get_running_loop())
        with self._lock:
            if not self._ended.locked():
                return
            self._outcome = outcome
        await outcome

    def take(self) -> T:
        """Return the result, or raise the error; call this only after the end."""
        if self.error is not None:
            raise self.error
        return cast(T, self.result)


class Threads:
    """A small pool of threads for blocking work.

    Most work takes less time than an event loop needs to sleep and wake, so the caller first blocks for a moment. The
    moment is bounded, and after a few such calls the loop's other tasks get a turn.
    """

    def __init__(self, count: int, *, name: str, moment_seconds: float = 0.0) -> None:
        self._moment_seconds = moment_seconds
        self._queue: SimpleQueue[PendingWork[Any] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._in_a_row = 0
        self._threads = [
            threading.Thread(target=self._serve, name=f"{name}-{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    async def run(self, work: Callable[[], T]) -> T:
        """Run ``work`` on one of the threads and return its result."""
        pending = PendingWork(work)
        with self._lock:
            if self._closed:
                raise closed()
            self._queue.put(pending)
        if not self._moment_seconds or not pending.ends_within(self._moment_seconds):
            await pending.ended()
            return pending.take()
        self._in_a_row += 1
        if self._in_a_row >= QUICK_IN_A_ROW:
            self._in_a_row = 0
            await asyncio.sleep(0)
        return pending.take()

    def _serve(self) -> None:
        while (pending := self._queue.get()) is not None:
            pending.run()
            outcome = pending.end()
            if outcome is not None:
                call_in_loop(outcome.get_loop(), outcome.set_result, None)

    def close(self) -> None:
        """Refuse new work and wait for the work under way."""
        with self._lock:
            self._closed = True
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()


class CommitCounter:
    """Counts commits, and wakes the tasks that wait for the next one.

    ``on_wait`` is called when a task begins to wait: only then the commits of other processes matter.
    """

    def __init__(self, *, on_wait: Callable[[], None]) -> None:
        self._on_wait = on_wait
        self._lock = threading.Lock()
        self._waiting: dict[asyncio.Future[None], Topic | None] = {}
        self._number = 0
        self._last: dict[Topic, int] = dict.fromkeys(TOPICS, 0)
        """For each topic, the last commit after which there may have been work."""

    @property
    def number(self) -> int:
        """The number of noticed commits."""
        return self._number

    @property
    def watched(self) -> bool:
        """Whether a task waits."""
        return bool(self._waiting)

    def note(self, wakes: Collection[Topic] = TOPICS) -> None:
        """Count a commit with its topics and wake the waiting tasks; callable from any thread."""
        wake_all(self.count(wakes))

    def count(self, wakes: Collection[Topic]) -> "list[asyncio.Future[None]]":
        """Count a commit, and return the futures to wake; the caller may wake others with the same call."""
        with self._lock:
            self._number += 1
            for topic in wakes:
                self._last[topic] = self._number
            woken = [future for future, topic in self._waiting.items() if topic is None or topic in wakes]
            for future in woken:
                del self._waiting[future]
        return woken

    async def wait(self, since: int, timeout_seconds: float, *, topic: Topic | None = None) -> bool:
        """Wait for a commit after number ``since`` (on a ``topic``) up to the timeout; return whether there was one."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        with self._lock:
            if self._newest(topic) > since:
                return True
            self._waiting[future] = topic
        self._on_wait()
        timer = loop.call_later(timeout_seconds, wake, [future])
        try:
            await future
        finally:
            timer.cancel()
            with self._lock:
                self._waiting.pop(future, None)
        return self._newest(topic) > since

    def _newest(self, topic: Topic | None) -> int:
        return self._number if topic is None else self._last[topic]
