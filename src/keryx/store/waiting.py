"""How tasks wait for the store: never walking away from work whose outcome is not known, never blocking the loop.

Everything here may be used from several event loops at once.
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
"""After so many calls that did not sleep, the loop's other tasks are let in."""


class Outcome(asyncio.Future[T]):
    """What will have become of some work: whoever awaits it is cancelled only once that is known."""

    def cancel(self, msg: Any = None) -> bool:  # noqa: ARG002 - as it is inherited
        """Refuse: the task that asks is cancelled as soon as it wakes."""
        return False


async def finish(work: Callable[[], T], *, start: Callable[[Callable[[], None]], object]) -> T:
    """Let ``start`` run ``work`` on another thread, and return what comes of it."""
    loop = asyncio.get_running_loop()
    outcome: Outcome[T] = Outcome(loop=loop)

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - carried to the caller, who raises it
            tell(loop, outcome.set_exception, carried(error))
        else:
            tell(loop, outcome.set_result, result)

    start(run)
    return await outcome


def on_new_thread(run: Callable[[], None]) -> None:
    """Start a thread for something that is done once."""
    threading.Thread(target=run).start()


def tell(loop: asyncio.AbstractEventLoop, callback: Callable[[T], object], value: T) -> None:
    """Call back in the loop's own thread, unless the loop is gone and there is nobody left to tell."""
    try:
        loop.call_soon_threadsafe(callback, value)
    except RuntimeError:
        # That is how asyncio says that the loop was closed.
        return


def wake_all(sleepers: Iterable[asyncio.Future[None]]) -> None:
    """Let go on whoever still waits, each in its own loop, from any thread; a loop is told once: that costs a round."""
    by_loop: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for future in sleepers:
        by_loop.setdefault(future.get_loop(), []).append(future)
    for loop, futures in by_loop.items():
        tell(loop, wake, futures)


def wake(futures: Sequence[asyncio.Future[None]]) -> None:
    """Let go on whoever still waits."""
    for future in futures:
        if not future.done():
            future.set_result(None)


def carried(error: BaseException) -> BaseException:
    """Return what may be raised in a task instead of ``error``: a future never gets rid of a StopIteration."""
    if not isinstance(error, StopIteration):
        return error
    instead = RuntimeError("A function given to the store asked for an item that is not there.")
    instead.__cause__ = error
    return instead


def closed() -> StoreUnavailable:
    """Return the answer to whoever comes too late."""
    return StoreUnavailable("This store was closed; open it again.")


class Pending(Generic[T]):
    """Work that another thread does: a caller waits for it on the spot for a moment, or sleeps until it has ended."""

    __slots__ = ("_ended", "_lock", "_outcome", "error", "result", "work")

    def __init__(self, work: Callable[[], T]) -> None:
        self.work = work
        self.result: T | None = None
        self.error: BaseException | None = None
        self._ended = threading.Lock()
        self._ended.acquire()
        self._lock = threading.Lock()
        self._outcome: Outcome[None] | None = None

    def end(self) -> "Outcome[None] | None":
        """Say that result or error are final; return whom to wake, if the caller sleeps."""
        with self._lock:
            self._ended.release()
            return self._outcome

    def ends_within(self, seconds: float) -> bool:
        """Wait for the end without leaving the loop; say whether it came."""
        return self._ended.acquire(timeout=seconds)

    async def ended(self) -> None:
        """Sleep until the end."""
        outcome: Outcome[None] = Outcome(loop=asyncio.get_running_loop())
        with self._lock:
            if not self._ended.locked():
                return
            self._outcome = outcome
        await outcome

    def take(self) -> T:
        """Return what came of the work, or raise it; only after its end."""
        if self.error is not None:
            raise self.error
        return cast(T, self.result)


class Threads:
    """A few threads that blocking work runs on, until they are closed.

    Most of it is done in less time than it takes to put an event loop to sleep and wake it, so the caller first waits
    for a moment. The moment is bounded, and every few calls the loop's other tasks get their turn all the same.
    """

    def __init__(self, count: int, *, name: str, moment_seconds: float = 0.0) -> None:
        self._moment_seconds = moment_seconds
        self._queue: SimpleQueue[Pending[Any] | None] = SimpleQueue()
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
        pending = Pending(work)
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
            try:
                pending.result = pending.work()
            except BaseException as error:  # noqa: BLE001 - carried to the caller, who raises it
                pending.error = carried(error)
            outcome = pending.end()
            if outcome is not None:
                tell(outcome.get_loop(), outcome.set_result, None)

    def close(self) -> None:
        """Refuse new work and wait for what was begun."""
        with self._lock:
            self._closed = True
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()


class Changes:
    """Counts commits, and wakes whoever waits for the next one.

    ``on_wait`` is called when somebody begins to wait: only then is it worth looking for other processes' commits.
    """

    def __init__(self, *, on_wait: Callable[[], None]) -> None:
        self._on_wait = on_wait
        self._lock = threading.Lock()
        self._waiting: dict[asyncio.Future[None], Topic | None] = {}
        self._number = 0
        self._last: dict[Topic, int] = dict.fromkeys(TOPICS, 0)
        """The last commit after which there may have been something to do."""

    @property
    def number(self) -> int:
        """How many commits were noticed."""
        return self._number

    @property
    def watched(self) -> bool:
        """Whether somebody waits."""
        return bool(self._waiting)

    def note(self, wakes: Collection[Topic] = TOPICS) -> None:
        """Say that there was a commit, and what there may be to do by it; any thread may."""
        wake_all(self.count(wakes))

    def count(self, wakes: Collection[Topic]) -> "list[asyncio.Future[None]]":
        """Count a commit, and return whom the caller is to wake, who may have others to wake with them."""
        with self._lock:
            self._number += 1
            for topic in wakes:
                self._last[topic] = self._number
            woken = [future for future, topic in self._waiting.items() if topic is None or topic in wakes]
            for future in woken:
                del self._waiting[future]
        return woken

    async def wait(self, since: int, timeout_seconds: float, *, topic: Topic | None = None) -> bool:
        """Wait for a commit after number ``since`` (about a ``topic``), at most so long; say whether there was one."""
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
