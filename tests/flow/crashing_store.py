"""A store through which a gateway crashes before or after any of its calls.

From then on every call raises ``Crash``, as if the process had ended.
"""

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from keryx.store.database import Database, ReadTx, T, Tx
from keryx.store.statements import Topic
from keryx.testing.faults import Crash


@contextmanager
def crashes_expected() -> Iterator[None]:
    """Silence asyncio's reports about tasks of a crashed gateway, which nothing awaits."""
    loop = asyncio.get_running_loop()
    handler = loop.get_exception_handler()
    loop.set_exception_handler(lambda _loop, _context: None)
    try:
        yield
        gc.collect()
    finally:
        loop.set_exception_handler(handler)


class CrashingStore(Database):
    """A real store as a process sees it that will crash."""

    def __init__(self, real: Database) -> None:
        self.dialect = real.dialect
        self._real = real
        self._crash_at: int | None = None
        self._points = count(1)
        self._has_crashed = False
        self.crashed = asyncio.Event()
        """Set at the planned crash."""

    def crash_at(self, number: int) -> None:
        """Crash at the ``number``-th crash point from now on, counted from 1."""
        self._crash_at, self._points = number, count(1)

    def crash_now(self) -> None:
        """Crash at the next call."""
        self._has_crashed = True

    def point(self) -> None:
        """Pass a crash point; raise ``Crash`` at the planned one and at all later ones."""
        if next(self._points) == self._crash_at:
            self.crashed.set()
            self._has_crashed = True
        self._raise_if_crashed()

    async def write(self, work: Callable[[Tx], T]) -> T:
        """Write, with a crash point before and after."""
        self.point()
        result = await self._real.write(work)
        self.point()
        return result

    async def read(self, work: Callable[[ReadTx], T]) -> T:
        """Read."""
        self._raise_if_crashed()
        return await self._real.read(work)

    async def write_index(self, work: Callable[[Tx], T]) -> T:
        """Write the index."""
        self._raise_if_crashed()
        return await self._real.write_index(work)

    async def discard_index(self) -> None:
        """Delete the index."""
        self._raise_if_crashed()
        await self._real.discard_index()

    @property
    def change_no(self) -> int:
        """The number of noticed commits."""
        return self._real.change_no

    async def changed(self, *, since: int, timeout_seconds: float, topic: Topic | None = None) -> bool:
        """Wait for a commit."""
        self._raise_if_crashed()
        return await self._real.changed(since=since, timeout_seconds=timeout_seconds, topic=topic)

    async def close(self) -> None:
        """Do nothing: the test closes the real store."""

    def _raise_if_crashed(self) -> None:
        if self._has_crashed:
            raise Crash
