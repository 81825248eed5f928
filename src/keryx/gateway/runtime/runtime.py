"""What the loops of one gateway share."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from typing import Any, Concatenate, ParamSpec, TypeVar

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

_log = log_of("runtime")

ReleaseDeadNodes = Callable[[], Awaitable[None]]
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
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    metrics: Metrics = field(default_factory=Metrics)
    platforms: frozenset[str] = frozenset()
    """The connected platforms, as the prompt lists them."""
    troubles: Callable[[], Sequence[str]] = tuple
    """The configured parts that do not work now, one sentence each. Only owners may read them."""
    release_dead_nodes: ReleaseDeadNodes = release_nothing
    poll_seconds: float = 1.0
    """How often a loop looks for work without a commit, because retries and pauses come due without one."""

    async def write_with_retry(
        self, work: Callable[[Tx], T], *, what: str, again: Callable[[Tx], T] | None = None
    ) -> T:
        """Write, and retry until the store is available: an effect outside Keryx must be recorded.

        A failed attempt may have been committed. If ``work`` must not run twice, pass ``again`` for the retries.
        """
        pause = PAUSE_FIRST_SECONDS
        while True:
            try:
                return await self.database.write(work)
            except StoreUnavailable as error:
                _log.warning("%s waits for the store: %s", what, error)
            work = again or work
            await self.sleep(pause)
            pause = min(2 * pause, PAUSE_MAX_SECONDS)

    async def record(
        self,
        held: TurnLease,
        transaction: Callable[Concatenate[Tx, TurnLease, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Write for a running turn, and retry as ``write_with_retry`` does. Raises ``LeaseLost`` for a late holder."""
        return await self.write_with_retry(lambda tx: transaction(tx, held, *args, **kwargs), what="a turn")


class WakeSignal:
    """Wakes one loop: after commits that may have made work for it, on ``set``, and once per poll interval.

    The loop waits, then does all the work there is. Any number of signals in between count as one.
    """

    def __init__(self, runtime: Runtime, topic: Topic) -> None:
        self._runtime = runtime
        self._topic = topic
        self._is_set = asyncio.Event()

    def set(self) -> None:
        """Wake the loop."""
        self._is_set.set()

    async def wait(self) -> None:
        """Wait for a signal after the previous return."""
        await self._is_set.wait()
        self._is_set.clear()

    async def watch_commits(self) -> None:
        """Signal after commits until cancelled. One task does it all the time, because commits are frequent."""
        runtime = self._runtime
        while True:
            # Read before the signal, so that a commit while the loop looks for work signals again.
            since = runtime.database.change_no
            self.set()
            try:
                await runtime.database.changed(
                    since=since, timeout_seconds=runtime.poll_seconds, topic=self._topic
                )
            except StoreUnavailable:
                await runtime.sleep(runtime.poll_seconds)


async def cancel(*tasks: "asyncio.Future[Any]") -> None:
    """Cancel tasks, and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def repeat_forever(
    runtime: Runtime, what: str, work: Callable[[], Awaitable[None]], *, seconds: float
) -> None:
    """Repeat ``work`` until cancelled. Failures are logged and do not end the loop."""
    pause = PAUSE_FIRST_SECONDS
    while True:
        try:
            await work()
        except StoreUnavailable as error:
            _log.warning("%s waits for the store: %s", what, error)
            await runtime.sleep(pause)
            pause = min(2 * pause, PAUSE_MAX_SECONDS)
            continue
        except Exception as error:  # noqa: BLE001 - a loop survives every failure of its work
            _log.failed("%s failed and will be retried", what, error=error)
            await runtime.sleep(PAUSE_MAX_SECONDS)
        pause = PAUSE_FIRST_SECONDS
        await runtime.sleep(seconds)
