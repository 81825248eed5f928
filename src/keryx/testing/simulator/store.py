"""A simulated process's view of a real store: the process may die, freeze or fail at every call.

Calls run one at a time while the virtual loop stands still, so that a seed always gives the same run.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine
from typing import Any, Protocol

from keryx.errors import StoreUnavailable
from keryx.store.database import Database, ReadTx, T, Tx, noting
from keryx.store.statements import TOPICS, Topic
from keryx.testing.faults import Crash
from keryx.testing.simulator.loop import Process, no_process_context

NOTICED_AFTER_SECONDS = 0.1
"""The delay until a process notices commits of other processes."""


def run_at_once(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that never waits, or raise its exception."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("a store of a simulation never waits")


class StoreHooks(Protocol):
    """The world's hooks around a call to the store."""

    async def before(self, process: Process, what: str) -> None:
        """Let the process die, freeze or fail before a call, if the plan says so."""

    async def after(self, process: Process, what: str) -> None:
        """Let the process die or freeze after a call, before it learns the outcome."""

    async def die(self, process: Process) -> None:
        """Kill the process now; never return."""

    def committed(self, by: "ProcessStore", wakes: Collection[Topic]) -> None:
        """Tell the stores of all processes about a commit; only the process's own store gets its topics."""

    def in_wake_order(self, waiting: list[T]) -> list[T]:
        """Return the waiters of one commit in the order in which they wake."""


class ProcessStore(Database):
    """The store as one process sees it."""

    def __init__(self, process: Process, real: Database, hooks: StoreHooks) -> None:
        self.process = process
        self.dialect = real.dialect
        self._real = real
        self._hooks = hooks
        self._number = 0
        self._last: dict[Topic, int] = dict.fromkeys(TOPICS, 0)
        self._waiting: dict[asyncio.Future[None], Topic | None] = {}

    async def write(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` in one transaction; a fault may come before, inside and after it."""
        self._refuse_reaped()
        await self._hooks.before(self.process, "write")
        wakes: set[Topic] = set()
        try:
            result = run_at_once(self._real.write(noting(work, wakes)))
        except Crash:
            await self._hooks.die(self.process)
            raise
        self._hooks.committed(self, wakes)
        await self._hooks.after(self.process, "write")
        return result

    async def read(self, work: Callable[[ReadTx], T]) -> T:
        """Run ``work`` on one snapshot."""
        self._refuse_reaped()
        await self._hooks.before(self.process, "read")
        return run_at_once(self._real.read(work))

    async def write_index(self, work: Callable[[Tx], T]) -> T:  # noqa: ARG002 - inherited signature
        """Refuse: a simulation has no search index."""
        raise StoreUnavailable("a simulated process has no index to write")

    async def discard_index(self) -> None:
        """Refuse: a simulation has no search index."""
        raise StoreUnavailable("a simulated process has no index to discard")

    @property
    def change_no(self) -> int:
        """The number of commits noticed so far."""
        return self._number

    async def changed(self, *, since: int, timeout_seconds: float, topic: Topic | None = None) -> bool:
        """Wait for a commit; commits of other processes are noticed a little later."""
        if self._newest(topic) <= since:
            loop = asyncio.get_running_loop()
            waiting: asyncio.Future[None] = loop.create_future()
            self._waiting[waiting] = topic
            timer = loop.call_later(timeout_seconds, _wake, waiting)
            try:
                await waiting
            finally:
                timer.cancel()
                self._waiting.pop(waiting, None)
        return self._newest(topic) > since

    def notice(self, wakes: Collection[Topic], *, after_seconds: float) -> None:
        """Notice a commit after ``after_seconds``."""
        asyncio.get_running_loop().call_later(
            after_seconds, self._notice, wakes, context=no_process_context()
        )

    def _notice(self, wakes: Collection[Topic]) -> None:
        self._number += 1
        for topic in wakes:
            self._last[topic] = self._number
        woken = [each for each, topic in self._waiting.items() if topic is None or topic in wakes]
        for each in self._hooks.in_wake_order(woken):
            del self._waiting[each]
            _wake(each)

    def _newest(self, topic: Topic | None) -> int:
        return self._number if topic is None else self._last[topic]

    async def close(self) -> None:
        """Do nothing: the real store outlives the process."""

    def _refuse_reaped(self) -> None:
        if self.process.state == "reaped":
            raise asyncio.CancelledError


def _wake(waiting: "asyncio.Future[None]") -> None:
    if not waiting.done():
        waiting.set_result(None)
