"""What the loops of one gateway share."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from typing import Protocol, TypeVar

from keryx.clock import Clock
from keryx.config import Settings
from keryx.errors import StoreUnavailable
from keryx.gateway.log import log_of
from keryx.gateway.metrics import Metrics
from keryx.ids import Ids
from keryx.live import Live
from keryx.store.database import Database, Tx
from keryx.store.statements import Topic
from keryx.values import dataclass

T = TypeVar("T")

PAUSE_FIRST_SECONDS = 0.1
PAUSE_MAX_SECONDS = 5.0
LOOK_SECONDS = 1.0

_log = log_of("desk")


class Pace(Protocol):
    """How a loop waits; a simulator lets virtual time pass instead."""

    async def sleep(self, seconds: float) -> None:
        """Return after so long."""


class RealPace:
    """Waits as long as it says."""

    async def sleep(self, seconds: float) -> None:
        """Return after so long."""
        await asyncio.sleep(seconds)


Bury = Callable[[], Awaitable[None]]
"""Frees what processes of this machine held that are dead, so that nobody waits for their leases to run out."""


async def bury_nobody() -> None:
    """Know of nobody who is dead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Where the loops of one gateway work; ``holder`` is the name under which it takes leases."""

    database: Database
    settings: Settings
    ids: Ids
    clock: Clock
    holder: str
    live: Live = field(default_factory=Live)
    pace: Pace = field(default_factory=RealPace)
    metrics: Metrics = field(default_factory=Metrics)
    platforms: frozenset[str] = frozenset()
    """Those connected, as the agent is told."""
    troubles: Callable[[], Sequence[str]] = tuple
    """What does not work now that an owner set up, a sentence each; for owners alone."""
    bury: Bury = bury_nobody
    look_seconds: float = LOOK_SECONDS
    """How long at most nobody looks for work: retries and pauses come due without a commit."""

    async def write(self, work: Callable[[Tx], T]) -> T:
        """Write, once; whoever can wait for a store that is away uses ``insist``."""
        return await self.database.write(work)

    async def insist(
        self, work: Callable[[Tx], T], *, what: str, again: Callable[[Tx], T] | None = None
    ) -> T:
        """Write as soon as the store takes it: what happened outside cannot be taken back, so it must be recorded.

        An attempt that failed may have been committed, its answer lost: after one, ``again`` is run where the same once
        more would not do.
        """
        pause = PAUSE_FIRST_SECONDS
        while True:
            try:
                return await self.database.write(work)
            except StoreUnavailable as error:
                _log.warning("%s waits for the store: %s", what, error)
            work = again or work
            await self.pace.sleep(pause)
            pause = min(2 * pause, PAUSE_MAX_SECONDS)


class Bell:
    """Wakes one loop: at commits that may have made work for it, when it is rung, and now and then all the same.

    The loop waits, and then looks for everything there is to do. Rings while it looks are one ring.
    """

    def __init__(self, desk: Desk, topic: Topic) -> None:
        self._desk = desk
        self._topic = topic
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake the loop; what rang is done by then, or is found at the next ring."""
        self._rung.set()

    async def wait(self) -> None:
        """Return when it has rung since the last time."""
        await self._rung.wait()
        self._rung.clear()

    async def listen(self) -> None:
        """Ring at commits until cancelled; one task for the life of the loop, because commits are many."""
        database = self._desk.database
        while True:
            # Taken before the ring: what is committed while the loop looks rings again.
            since = database.change_no
            self._rung.set()
            try:
                await database.changed(
                    since=since, timeout_seconds=self._desk.look_seconds, topic=self._topic
                )
            except StoreUnavailable:
                await self._desk.pace.sleep(self._desk.look_seconds)


async def endlessly(desk: Desk, what: str, work: Callable[[], Awaitable[None]], *, seconds: float) -> None:
    """Do something again and again until cancelled; what goes wrong is logged and does not end it."""
    pause = PAUSE_FIRST_SECONDS
    while True:
        try:
            await work()
        except StoreUnavailable as error:
            _log.warning("%s waits for the store: %s", what, error)
            await desk.pace.sleep(pause)
            pause = min(2 * pause, PAUSE_MAX_SECONDS)
            continue
        except Exception as error:  # noqa: BLE001 - a loop outlives whatever happens in it
            _log.failed("%s failed; it is tried again", what, error=error)
            await desk.pace.sleep(PAUSE_MAX_SECONDS)
        pause = PAUSE_FIRST_SECONDS
        await desk.pace.sleep(seconds)
