"""A terminal's part in the gateway's work: it runs its own session's turns, and records shown deliveries as sent.

The worker shows nothing and reads no key. While a gateway is on the store, the terminal begins no turn and only
finishes the turns that it began before.
"""

import asyncio
import logging
from types import TracebackType
from typing import Final, Self

from keryx.agents.agent import Agent
from keryx.cli.chat.dead_terminals import release_dead
from keryx.cli.chat.own_turns import OwnTurns
from keryx.clock import SECOND
from keryx.core.accounts.transactions import release_connector
from keryx.core.deliveries.transactions.retire_address import retire_addresses
from keryx.core.turns.rules.lease import RENEW_EVERY
from keryx.core.turns.views.terminal import TerminalView
from keryx.core.turns.views.terminal_chat import LocalChat
from keryx.core.upkeep.transactions.record_heartbeat import leave_node
from keryx.core.upkeep.transactions.recover import BATCH
from keryx.errors import StoreUnavailable
from keryx.gateway.deliveries import Dispatcher
from keryx.gateway.runtime.connector_lease import HeldConnector, take_connector_lease
from keryx.gateway.runtime.heartbeat import send_heartbeat
from keryx.gateway.runtime.runtime import Runtime, endlessly
from keryx.gateway.upkeep import RECOVER_SECONDS, expire_questions, recover_all
from keryx.gateway.waiting_commands import answer_waiting
from keryx.platforms.terminal.adapter import TerminalAdapter
from keryx.store.database import Tx
from keryx.tools.tool import Toolbox

ACCOUNT_SECONDS: Final = 1.0
"""How often a terminal asks for the account of its chat while another terminal has it."""

_log = logging.getLogger("keryx.cli.chat.chat")


class TerminalWorker:
    """A terminal at work on the store, for the length of an ``async with`` block."""

    def __init__(
        self, runtime: Runtime, agent: Agent, toolbox: Toolbox, *, chat: LocalChat, adapter: TerminalAdapter
    ) -> None:
        self._runtime = runtime
        self._agent = agent
        self._chat = chat
        self._adapter = adapter
        self._turns = OwnTurns(runtime, agent, toolbox)
        self._hold: HeldConnector | None = None
        self._dispatcher: Dispatcher | None = None
        self._commanding: asyncio.Task[int] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._has_gateway = False

    @property
    def records(self) -> bool:
        """Whether this terminal holds the account, and so records deliveries as sent."""
        return self._hold is not None

    async def __aenter__(self) -> Self:
        """Sign in, release the leases of dead terminals, and ask for the account."""
        await self._sign()
        await release_dead(self._runtime, self._chat)
        await self._take_account()
        await self._recover()
        seconds = RENEW_EVERY / SECOND
        self._tasks = [
            asyncio.create_task(endlessly(self._runtime, "the sign of life", self._sign, seconds=seconds)),
            asyncio.create_task(
                endlessly(self._runtime, "the terminal", self._keep_account, seconds=ACCOUNT_SECONDS)
            ),
            asyncio.create_task(endlessly(self._runtime, "recovery", self._recover, seconds=RECOVER_SECONDS)),
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Hand back the turns that still run, and release the account."""
        await self._turns.end(0)
        tasks = [*self._tasks, *([self._commanding] if self._commanding else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        hold, holder, settings = self._hold, self._runtime.holder, self._runtime.settings

        def leave(tx: Tx) -> None:
            if hold is not None:
                release_connector(tx, hold.connector)
            retire_addresses(tx, settings=settings, limit=BATCH)
            leave_node(tx, holder=holder)

        try:
            await self._runtime.write(leave)
        except StoreUnavailable as unavailable:
            _log.warning("the store is unavailable: %s", unavailable)
        await self._agent.close()

    async def act_on(self, view: TerminalView) -> None:
        """Begin the turns, commands and deliveries that a view shows to be due here."""
        self._has_gateway = view.has_gateway
        await self._turns.run(view)
        if view.commands and not view.has_gateway and (self._commanding is None or self._commanding.done()):
            self._commanding = asyncio.create_task(answer_waiting(self._runtime))
        if view.to_send and self._dispatcher is not None:
            await self._dispatcher.send_due()

    async def end_turns(self, seconds: float) -> None:
        """Begin no more turns, let the running ones finish for so long, and hand the rest back."""
        await self._turns.end(seconds)

    async def _recover(self) -> None:
        """Take up what a crash left. No platform is connected here, so deliveries are marked as possibly repeated."""
        await self._runtime.bury()
        if not self._has_gateway:
            await recover_all(self._runtime, deduplicating=frozenset())
            await expire_questions(self._runtime)

    async def _sign(self) -> None:
        await send_heartbeat(self._runtime, "chat")

    async def _keep_account(self) -> None:
        await self._take_account()
        if self._hold is not None:
            await self._runtime.pace.sleep(RENEW_EVERY / SECOND)

    async def _take_account(self) -> None:
        """Take or keep the account of the chat. Without it this terminal shows, and another one records."""
        hold = await take_connector_lease(self._runtime, self._adapter)
        if hold is None:
            self._hold = self._dispatcher = None
        elif self._hold is None or not self._hold.keep(hold):
            self._hold, self._dispatcher = hold, Dispatcher(self._runtime, self._adapter, hold)
