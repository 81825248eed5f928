"""The gateway as a whole: starts the loops, keeps its accounts, and ends in order.

An account is polled and sent through only while this gateway holds its connector lease; when that is lost, both stop
at once, and it is asked for again.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import field

from keryx.agents.agent import Agent
from keryx.clock import SECOND
from keryx.core.accounts.transactions import Connector, release_connector
from keryx.core.turns.rules.lease import RENEW_EVERY
from keryx.core.turns.views.pending_work import is_left_behind
from keryx.core.upkeep.transactions.record_heartbeat import leave_node
from keryx.errors import NotConnected, StoreUnavailable
from keryx.gateway.deliveries import Dispatcher
from keryx.gateway.intake import take_in
from keryx.gateway.runtime.connector_lease import HeldConnector, take_connector_lease
from keryx.gateway.runtime.heartbeat import send_heartbeat
from keryx.gateway.runtime.log import log_of
from keryx.gateway.runtime.metrics import Metrics, summary
from keryx.gateway.runtime.rate_limits import RateLimits
from keryx.gateway.runtime.runtime import Runtime, endlessly
from keryx.gateway.turns.loop import TURNS_MAX, TurnLoop
from keryx.gateway.upkeep import (
    EXPIRE_SECONDS,
    FLUSH_SECONDS,
    RECOVER_SECONDS,
    expire_questions,
    flush_expiring,
    recover_all,
)
from keryx.gateway.waiting_commands import answer_waiting
from keryx.platforms.adapter import Adapter
from keryx.tools.tool import Toolbox
from keryx.values import dataclass

DRAIN_SECONDS = 20.0
COMMAND_SECONDS = 0.1
ACCOUNT_PAUSE_SECONDS = 1.0
ACCOUNT_PAUSE_MAX_SECONDS = 30.0
"""The pauses between attempts to connect double up to this."""
OPEN_SECONDS = 5.0
"""How long a platform that does not let itself be connected holds up the others' start."""

_log = log_of("supervisor")


@dataclass(eq=False, slots=True)
class Account:
    """An account this gateway works on, or waits for."""

    adapter: Adapter
    limits: RateLimits = field(default_factory=RateLimits)
    trouble: str | None = "not connected yet"
    """Why it is not connected here, in words; None while it is."""
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once it is connected, another gateway has it, or that failed for now."""

    @property
    def name(self) -> str:
        """What people call it."""
        adapter = self.adapter
        return adapter.platform if adapter.account is None else f"{adapter.platform}@{adapter.account}"

    def settle(self, trouble: str | None) -> None:
        """Note how it stands."""
        self.trouble = trouble
        self.settled.set()


class Gateway:
    """Everything that runs in ``keryx serve``."""

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
        """What was done here since the start, as numbers."""
        return self._runtime.metrics

    @property
    def turns_running(self) -> int:
        """How many turns run here now."""
        return self._turns.running

    async def start(self) -> None:
        """Begin to work; returns when intake is open, whatever there is to take up."""
        await self._sign()
        work = {
            "turns": self._turns.run(),
            "recovery": endlessly(self._runtime, "recovery", self._recover, seconds=RECOVER_SECONDS),
            "approvals": endlessly(
                self._runtime, "approvals", lambda: expire_questions(self._runtime), seconds=EXPIRE_SECONDS
            ),
            "flush": endlessly(
                self._runtime, "flush", lambda: flush_expiring(self._runtime), seconds=FLUSH_SECONDS
            ),
            "commands": self._answer_commands(),
            "node": endlessly(self._runtime, "the sign of life", self._sign, seconds=RENEW_EVERY / SECOND),
        }
        work |= {account.name: self._keep_account(account) for account in self.accounts}
        self._tasks = [asyncio.create_task(each, name=f"keryx-{name}") for name, each in work.items()]
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                await asyncio.gather(*(account.settled.wait() for account in self.accounts))
        except TimeoutError:
            _log.warning("not every platform could be connected yet; it is tried again")
        _log.info("ready with %s accounts as %s", len(self.accounts), self._runtime.holder)

    async def stop(self, *, seconds: float = DRAIN_SECONDS) -> None:
        """Begin nothing more, finish or hand back what runs within so long, and let go of everything.

        Until then messages are stored and answers sent; what is still to be sent after it waits for the next start.
        """
        await self._turns.drain(seconds)
        _log.info("drained: %s", summary(self._runtime.metrics))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for account in self.accounts:
            await account.adapter.close()
        await self._agent.close()
        try:
            await self._runtime.write(lambda tx: leave_node(tx, holder=self._runtime.holder))
        except StoreUnavailable as error:
            _log.warning("the store is away: %s", error)

    async def wait(self) -> None:
        """Return when a loop has ended, which only a fault or ``stop`` makes happen."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if not task.cancelled() and task.exception() is not None:
                raise task.exception() or AssertionError

    async def _sign(self) -> None:
        await send_heartbeat(self._runtime, "gateway")

    async def _recover(self) -> None:
        await self._runtime.bury()
        if await self._runtime.database.read(is_left_behind):
            await recover_all(self._runtime, deduplicating=self._deduplicating)

    async def _answer_commands(self) -> None:
        async def look() -> None:
            since = self._runtime.database.change_no
            if not await answer_waiting(self._runtime):
                await self._runtime.database.changed(since=since, timeout_seconds=self._runtime.look_seconds)

        await endlessly(self._runtime, "commands", look, seconds=COMMAND_SECONDS)

    async def _keep_account(self, account: Account) -> None:
        """Hold the account's lease and work on it while it lasts; ask for it again when it is lost."""
        runtime = self._runtime
        pause = ACCOUNT_PAUSE_SECONDS
        while True:
            hold = await self._take(account.adapter)
            if hold is None:
                account.settle("another gateway has it, or the store is away")
                await runtime.pace.sleep(runtime.look_seconds)
                continue
            if await self._work_on(account, hold):
                pause = ACCOUNT_PAUSE_SECONDS
            await runtime.pace.sleep(pause)
            pause = min(2 * pause, ACCOUNT_PAUSE_MAX_SECONDS)

    async def _work_on(self, account: Account, hold: HeldConnector) -> bool:
        """Take in and send until that ends; returns whether the account was connected."""
        adapter = account.adapter
        connected = asyncio.Event()

        def opened() -> None:
            connected.set()
            account.settle(None)

        working = [
            asyncio.create_task(take_in(self._runtime, adapter, opened=opened)),
            asyncio.create_task(Dispatcher(self._runtime, adapter, hold, limits=account.limits).run()),
            asyncio.create_task(self._renew(adapter, hold)),
        ]
        try:
            done, _ = await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
            for error in filter(None, (task.exception() for task in done)):
                self._note_trouble(account, error)
        finally:
            for task in working:
                task.cancel()
            await asyncio.gather(*working, return_exceptions=True)
            await self._release(hold.connector)
        return connected.is_set()

    def _note_trouble(self, account: Account, error: BaseException) -> None:
        if isinstance(error, NotConnected):
            account.settle(str(error))
            _log.warning("%s is not connected: %s. It is tried again.", account.name, error)
        else:
            account.settle("it stopped, see the log")
            _log.failed("%s stopped; it is tried again", account.name, error=error)

    async def _take(self, adapter: Adapter) -> HeldConnector | None:
        try:
            return await take_connector_lease(self._runtime, adapter)
        except StoreUnavailable as error:
            _log.warning("%s waits for the store: %s", adapter.platform, error)
            return None

    async def _renew(self, adapter: Adapter, hold: HeldConnector) -> None:
        """Return when the account is lost to another gateway, or could not be kept for too long."""
        while hold.is_sure():
            await self._runtime.pace.sleep(RENEW_EVERY / SECOND)
            renewed = await self._take(adapter)
            if renewed is not None and not hold.keep(renewed):
                return

    async def _release(self, connector: Connector) -> None:
        try:
            await self._runtime.write(lambda tx: release_connector(tx, connector))
        except StoreUnavailable as error:
            _log.warning("an account could not be let go: %s", error)
