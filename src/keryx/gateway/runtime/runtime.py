"""What the loops of one gateway share."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from keryx.clock import Clock
from keryx.commands.table import COMMANDS
from keryx.config import Settings
from keryx.core.conversations.transactions.command_context import Commands
from keryx.core.turns.rules.lease import TurnLease
from keryx.errors import StoreUnavailable
from keryx.gateway.runtime.log import log_of
from keryx.gateway.runtime.metrics import Metrics
from keryx.ids import Ids
from keryx.live import Live
from keryx.store.database import Database, Tx
from keryx.store.statements import Topic
from keryx.values import dataclass

T = TypeVar("T")
P = ParamSpec("P")

PAUSE_FIRST_SECONDS = 0.1
PAUSE_MAX_SECONDS = 5.0
LOOK_SECONDS = 1.0

_log = log_of("runtime")


class Pace(Protocol):
    """How a loop waits. In a simulation, virtual time passes instead."""

    async def sleep(self, seconds: float) -> None:
        """Return after so long."""


class RealPace:
    """Real time."""

    async def sleep(self, seconds: float) -> None:
        """Return after so long."""
        await asyncio.sleep(seconds)


ReleaseDead = Callable[[], Awaitable[None]]
"""Release the leases of dead processes of this machine, so that no gateway waits for them to expire."""


async def release_nothing() -> None:
    """Release nothing, where locks do not tell which processes are dead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """The store, settings and clock of one gateway. ``holder`` is the name under which it takes leases."""

    database: Database
    settings: Settings
    ids: Ids
    clock: Clock
    holder: str
    commands: Commands = COMMANDS
    live: Live = field(default_factory=Live)
    pace: Pace = field(default_factory=RealPace)
    metrics: Metrics = field(default_factory=Metrics)
    platforms: frozenset[str] = frozenset()
    """The connected platforms, as the prompt lists them."""
    troubles: Callable[[], Sequence[str]] = tuple
    """The configured parts that do not work now, one sentence each. Only owners may read them."""
    bury: ReleaseDead = release_nothing
    look_seconds: float = LOOK_SECONDS
    """The longest time between two looks for work. Retries and pauses come due without a commit."""

    async def write(self, work: Callable[[Tx], T]) -> T:
        """Write once. Use ``insist`` to wait for a store that is unavailable."""
        return await self.database.write(work)

    async def insist(
        self, work: Callable[[Tx], T], *, what: str, again: Callable[[Tx], T] | None = None
    ) -> T:
        """Write, and retry until the store is available: an effect outside Keryx must be recorded.

        A failed attempt may have been committed all the same. If running ``work`` twice is wrong, pass ``again``:
        it runs after the first failure.
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

    async def record(
        self,
        held: TurnLease,
        transaction: Callable[Concatenate[Tx, TurnLease, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Write for a running turn, and retry as ``insist`` does. Raises ``LeaseLost`` for a late holder."""
        return await self.insist(lambda tx: transaction(tx, held, *args, **kwargs), what="a turn")


class WakeSignal:
    """Wakes one loop: after commits that may have made work for it, on ``ring``, and once per look interval.

    The loop waits, then does all the work there is. Any number of rings in between count as one.
    """

    def __init__(self, runtime: Runtime, topic: Topic) -> None:
        self._runtime = runtime
        self._topic = topic
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake the loop."""
        self._rung.set()

    async def wait(self) -> None:
        """Wait for a ring after the previous return."""
        await self._rung.wait()
        self._rung.clear()

    async def listen(self) -> None:
        """Ring after commits until cancelled. One task does it all the time, because commits are frequent."""
        database = self._runtime.database
        while True:
            # Read before the ring, so that a commit during the look rings again.
            since = database.change_no
            self._rung.set()
            try:
                await database.changed(
                    since=since, timeout_seconds=self._runtime.look_seconds, topic=self._topic
                )
            except StoreUnavailable:
                await self._runtime.pace.sleep(self._runtime.look_seconds)


async def endlessly(
    runtime: Runtime, what: str, work: Callable[[], Awaitable[None]], *, seconds: float
) -> None:
    """Repeat ``work`` until cancelled. Failures are logged and do not end the loop."""
    pause = PAUSE_FIRST_SECONDS
    while True:
        try:
            await work()
        except StoreUnavailable as error:
            _log.warning("%s waits for the store: %s", what, error)
            await runtime.pace.sleep(pause)
            pause = min(2 * pause, PAUSE_MAX_SECONDS)
            continue
        except Exception as error:  # noqa: BLE001 - a loop survives every failure of its work
            _log.failed("%s failed; it is tried again", what, error=error)
            await runtime.pace.sleep(PAUSE_MAX_SECONDS)
        pause = PAUSE_FIRST_SECONDS
        await runtime.pace.sleep(seconds)
