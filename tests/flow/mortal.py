"""A store through which a gateway dies: before or after any of its calls, and never comes back.

To whoever works on it, it is the end of the process: every call from then on raises ``Crash``.
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
def deaths_are_expected() -> Iterator[None]:
    """Let nobody complain of tasks that died with their process and were asked by nobody how they ended."""
    loop = asyncio.get_running_loop()
    handler = loop.get_exception_handler()
    loop.set_exception_handler(lambda _loop, _context: None)
    try:
        yield
        gc.collect()
    finally:
        loop.set_exception_handler(handler)


class MortalStore(Database):
    """A real store seen by a process that will die."""

    def __init__(self, real: Database) -> None:
        self.dialect = real.dialect
        self._real = real
        self._dies_at: int | None = None
        self._places = count(1)
        self._dead = False
        self.died = asyncio.Event()
        """Set when it died at its place."""

    def die_at(self, place: int) -> None:
        """Let the process die at the place with this number from now on, counted from 1."""
        self._dies_at, self._places = place, count(1)

    def die_now(self) -> None:
        """Let the process be dead, wherever it is."""
        self._dead = True

    def place(self) -> None:
        """Die here, if this is the place, or if that was before."""
        if next(self._places) == self._dies_at:
            self.died.set()
            self._dead = True
        self._live()

    async def write(self, work: Callable[[Tx], T]) -> T:
        """Write, between two places."""
        self.place()
        result = await self._real.write(work)
        self.place()
        return result

    async def read(self, work: Callable[[ReadTx], T]) -> T:
        """Read, if alive."""
        self._live()
        return await self._real.read(work)

    async def write_index(self, work: Callable[[Tx], T]) -> T:
        """Write the index, if alive."""
        self._live()
        return await self._real.write_index(work)

    async def discard_index(self) -> None:
        """Throw the index away, if alive."""
        self._live()
        await self._real.discard_index()

    @property
    def change_no(self) -> int:
        """How many commits were noticed."""
        return self._real.change_no

    async def changed(self, *, since: int, timeout_seconds: float, topic: Topic | None = None) -> bool:
        """Wait for a commit, if alive."""
        self._live()
        return await self._real.changed(since=since, timeout_seconds=timeout_seconds, topic=topic)

    async def close(self) -> None:
        """Leave the real store to whoever opened it."""

    def _live(self) -> None:
        if self._dead:
            raise Crash
