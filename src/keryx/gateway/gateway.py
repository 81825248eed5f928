"""The gateway: start the loops, hold the connector leases of its accounts, and stop in order.

The gateway receives and sends through an account only while it holds the account's connector lease. When it loses the
lease, both stop at once, and it asks for the lease again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from functools import partial

from keryx.agents.agent import Agent
from keryx.clock import SECOND
from keryx.core.accounts.transactions import release_connector
from keryx.core.turns.rules.lease import RENEW_EVERY
from keryx.core.turns.views.pending_work import needs_recovery
from keryx.core.upkeep.transactions.record_heartbeat import leave_node
from keryx.errors import NotConnected, StoreUnavailable
from keryx.gateway.deliveries import Dispatcher, RateLimits
from keryx.gateway.intake import run_intake
from keryx.gateway.runtime.connector_lease import HeldConnector, take_connector_lease
from keryx.gateway.runtime.log import log_of
from keryx.gateway.runtime.metrics import Metrics, summary
from keryx.gateway.runtime.runtime import Runtime, cancel, repeat_forever
from keryx.gateway.turns.loop import TURNS_MAX, TurnLoop
from keryx.gateway.upkeep import (
    EXPIRE_SECONDS,
    FLUSH_SECONDS,
    RECOVER_SECONDS,
    expire_questions,
    flush_expiring,
    recover_all,
    send_heartbeat,
)
from keryx.gateway.waiting_commands import answer_waiting
from keryx.platforms.adapter import Adapter
from keryx.tools.tool import Toolbox
from keryx.values import dataclass

DRAIN_SECONDS = 20.0
COMMAND_SECONDS = 0.1
RECONNECT_SECONDS = 1.0
RECONNECT_MAX_SECONDS = 30.0
"""The pauses between attempts to connect double up to this."""
START_SECONDS = 5.0
"""How long the start waits for platforms that do not connect."""

_log = log_of("supervisor")


@dataclass(eq=False, slots=True)
class Account:
    """A bot account that this gateway serves or waits for."""

    adapter: Adapter
    limits: RateLimits = field(default_factory=RateLimits)
    trouble: str | None = "not connected yet"
    """Why the account is not connected here, in words; None while it is connected."""
    was_tried: asyncio.Event = field(default_factory=asyncio.Event)
    """Set after the first attempt to connect, successful or not."""

    @property
    def name(self) -> str:
        """The name of the account for people."""
        adapter = self.adapter
        return adapter.platform if adapter.account is None else f"{adapter.platform}@{adapter.account}"

    def set_trouble(self, trouble: str | None) -> None:
        """Note the outcome of an attempt to connect."""
        self.trouble = trouble
        self.was_tried.set()


class Gateway:
    """All loops of ``keryx serve``."""

    def __init__(
        self,
        runtime: Runtime,
        agent: Agent,
        toolbox: Toolbox,
        adapters: Sequence[Adapter],
        *,
        turns_max: int = TURNS_MAX,
    ) -> None:
        self._runtime = runtime
        self._agent = agent
        self.accounts = tuple(map(Account, adapters))
        self._turns = TurnLoop(runtime, agent, toolbox, turns_max=turns_max)
        self._deduplicating = frozenset(
            adapter.platform for adapter in adapters if adapter.capabilities.deduplicates
        )
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def metrics(self) -> Metrics:
        """The metrics of this gateway since its start."""
        return self._runtime.metrics

    @property
    def turns_running(self) -> int:
        """The number of turns that run here now."""
        return self._turns.running

    async def start(self) -> None:
        """Start the loops. Return when intake is open; recovery may still be under way."""
        runtime = self._runtime
        heartbeat = partial(send_heartbeat, runtime, "gateway")
        await heartbeat()
        repeated: dict[str, tuple[Callable[[], Awaitable[None]], float]] = {
            "recovery": (self._recover, RECOVER_SECONDS),
            "approvals": (partial(expire_questions, runtime), EXPIRE_SECONDS),
            "flush": (partial(flush_expiring, runtime), FLUSH_SECONDS),
            "commands": (self._answer_commands, COMMAND_SECONDS),
            "heartbeat": (heartbeat, RENEW_EVERY / SECOND),
        }
        work = {"turns": self._turns.run()}
        work |= {
            name: repeat_forever(runtime, name, each, seconds=pause)
            for name, (each, pause) in repeated.items()
        }
        work |= {account.name: self._serve_account(account) for account in self.accounts}
        self._tasks = [asyncio.create_task(each, name=f"keryx-{name}") for name, each in work.items()]
        try:
            async with asyncio.timeout(START_SECONDS):
                await asyncio.gather(*(account.was_tried.wait() for account in self.accounts))
        except TimeoutError:
            _log.warning("not all platforms are connected yet; the gateway keeps trying")
        _log.info("ready with %s accounts as %s", len(self.accounts), runtime.holder)

    async def stop(self, *, seconds: float = DRAIN_SECONDS) -> None:
        """Begin no more turns, finish or hand back the running turns within ``seconds``, and release everything.

        Messages are stored and answers sent until then. Deliveries that are due later wait for the next start.
        """
        await self._turns.drain(seconds)
        _log.info("drained: %s", summary(self._runtime.metrics))
        await cancel(*self._tasks)
        for account in self.accounts:
            await account.adapter.close()
        await self._agent.close()
        try:
            await self._runtime.database.write(lambda tx: leave_node(tx, holder=self._runtime.holder))
        except StoreUnavailable as error:
            _log.warning("the store is unavailable: %s", error)

    async def wait(self) -> None:
        """Wait until a loop ends: after ``stop``, or because of a bug, whose exception is raised."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if not task.cancelled():
                task.result()

    async def _recover(self) -> None:
        await self._runtime.release_dead_nodes()
        if await self._runtime.database.read(needs_recovery):
            await recover_all(self._runtime, deduplicating=self._deduplicating)

    async def _answer_commands(self) -> None:
        database = self._runtime.database
        since = database.change_no
        if not await answer_waiting(self._runtime):
            await database.changed(since=since, timeout_seconds=self._runtime.poll_seconds)

    async def _serve_account(self, account: Account) -> None:
        """Serve an account whenever this gateway holds its connector lease."""
        runtime = self._runtime
        pause = RECONNECT_SECONDS
        while True:
            hold = await self._take_lease(account.adapter)
            if hold is None:
                account.set_trouble("another gateway serves it, or the store is unavailable")
                await runtime.sleep(runtime.poll_seconds)
                continue
            if await self._connect(account, hold):
                pause = RECONNECT_SECONDS
            await runtime.sleep(pause)
            pause = min(2 * pause, RECONNECT_MAX_SECONDS)

    async def _connect(self, account: Account, hold: HeldConnector) -> bool:
        """Receive and send until the lease is lost or the adapter fails; return whether the account was connected."""
        runtime, adapter = self._runtime, account.adapter
        connected = asyncio.Event()

        def opened() -> None:
            connected.set()
            account.set_trouble(None)

        tasks = [
            asyncio.create_task(run_intake(runtime, adapter, opened=opened)),
            asyncio.create_task(Dispatcher(runtime, adapter, hold, limits=account.limits).run()),
            asyncio.create_task(self._renew(adapter, hold)),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for error in filter(None, (task.exception() for task in done)):
                self._report_failure(account, error)
        finally:
            await cancel(*tasks)
            await self._release(hold)
        return connected.is_set()

    def _report_failure(self, account: Account, error: BaseException) -> None:
        if isinstance(error, NotConnected):
            account.set_trouble(str(error))
            _log.warning("%s is not connected: %s. The gateway keeps trying.", account.name, error)
        else:
            account.set_trouble("it stopped, see the log")
            _log.failed("%s stopped and will be restarted", account.name, error=error)

    async def _take_lease(self, adapter: Adapter) -> HeldConnector | None:
        try:
            return await take_connector_lease(self._runtime, adapter)
        except StoreUnavailable as error:
            _log.warning("%s waits for the store: %s", adapter.platform, error)
            return None

    async def _renew(self, adapter: Adapter, hold: HeldConnector) -> None:
        """Renew the lease. Return when another gateway holds it, or when no renewal succeeded for too long."""
        while hold.is_valid():
            await self._runtime.sleep(RENEW_EVERY / SECOND)
            renewed = await self._take_lease(adapter)
            if renewed is not None and not hold.extend(renewed):
                return

    async def _release(self, hold: HeldConnector) -> None:
        try:
            await self._runtime.database.write(lambda tx: release_connector(tx, hold.connector))
        except StoreUnavailable as error:
            _log.warning("the lease of an account could not be released: %s", error)
