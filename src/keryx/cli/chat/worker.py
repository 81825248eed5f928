"""The gateway's loops for one terminal: run its own session's turns, and record shown deliveries as sent.

The worker does no input or output. While a gateway is on the store, the terminal begins no turn and only finishes the
turns that it began before.
"""

import asyncio
import logging
import os
import socket
from functools import partial
from types import TracebackType
from typing import Final, Self

from keryx.agents.agent import Agent
from keryx.cli.chat.own_turns import OwnTurns
from keryx.clock import SECOND
from keryx.core.accounts.transactions import Connector, release_connector
from keryx.core.conversations.rules.message import TextPart
from keryx.core.conversations.rules.session import SessionId
from keryx.core.deliveries.transactions.retire_address import retire_addresses
from keryx.core.people.rules.access import Refused
from keryx.core.turns.rules.inbox import Inbound
from keryx.core.turns.rules.lease import RENEW_EVERY, Lease, TurnLease
from keryx.core.turns.transactions.accept_message import Accepted, accept_message
from keryx.core.turns.transactions.fail_turn import Failure, fail_turn
from keryx.core.turns.views.terminal import TerminalView
from keryx.core.turns.views.terminal_session import HeldLease, LocalChat, list_leases
from keryx.core.upkeep.transactions.record_heartbeat import leave_node
from keryx.core.upkeep.transactions.recover import BATCH
from keryx.errors import LeaseLost, NotAllowed, StoreUnavailable
from keryx.gateway.deliveries import Dispatcher
from keryx.gateway.runtime.connector_lease import HeldConnector, take_connector_lease
from keryx.gateway.runtime.runtime import Runtime, repeat_forever
from keryx.gateway.upkeep import RECOVER_SECONDS, expire_questions, recover_all, send_heartbeat
from keryx.gateway.waiting_commands import answer_waiting
from keryx.ids import Ids
from keryx.platforms.terminal.adapter import TerminalAdapter
from keryx.store.database import Tx
from keryx.tools.tool import Toolbox

ACCOUNT_SECONDS: Final = 1.0
"""How often a terminal tries to take its chat's connector lease while another terminal holds it."""
KILLED: Final = "the terminal that ran the turn was killed"

_log = logging.getLogger("keryx.cli.chat.chat")


class TerminalWorker:
    """The loops of a terminal, running during an ``async with`` block."""

    def __init__(
        self, runtime: Runtime, agent: Agent, toolbox: Toolbox, *, chat: LocalChat, adapter: TerminalAdapter
    ) -> None:
        self._runtime = runtime
        self._agent = agent
        self._chat = chat
        self._adapter = adapter
        self._turns = OwnTurns(runtime, agent, toolbox)
        self._connector: HeldConnector | None = None
        self._dispatcher: Dispatcher | None = None
        self._commanding: asyncio.Task[int] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._has_gateway = False

    @property
    def records(self) -> bool:
        """Whether this terminal holds the connector lease, and so records deliveries as sent."""
        return self._connector is not None

    async def __aenter__(self) -> Self:
        """Record a heartbeat, release the leases of dead terminals, take the connector lease, and start the loops."""
        await self._send_heartbeat()
        await _release_dead_terminals(self._runtime, self._chat)
        await self._take_connector()
        await self._recover()
        loops = (
            ("the heartbeat", self._send_heartbeat, RENEW_EVERY / SECOND),
            ("the terminal", self._keep_connector, ACCOUNT_SECONDS),
            ("recovery", self._recover, RECOVER_SECONDS),
        )
        self._tasks = [
            asyncio.create_task(repeat_forever(self._runtime, name, step, seconds=seconds))
            for name, step, seconds in loops
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Hand back the turns that still run, and release the connector lease."""
        await self._turns.end(0)
        tasks = [*self._tasks, *([self._commanding] if self._commanding else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        held, holder, settings = self._connector, self._runtime.holder, self._runtime.settings

        def leave(tx: Tx) -> None:
            if held is not None:
                release_connector(tx, held.connector)
            retire_addresses(tx, settings=settings, limit=BATCH)
            leave_node(tx, holder=holder)

        try:
            await self._runtime.database.write(leave)
        except StoreUnavailable as unavailable:
            _log.warning("the store is unavailable: %s", unavailable)
        await self._agent.close()

    async def act_on(self, view: TerminalView) -> None:
        """Begin the turns, commands and deliveries of a view that are due at this terminal."""
        self._has_gateway = view.has_gateway
        await self._turns.run(view)
        if view.commands and not view.has_gateway and (self._commanding is None or self._commanding.done()):
            self._commanding = asyncio.create_task(answer_waiting(self._runtime))
        if view.to_send and self._dispatcher is not None:
            await self._dispatcher.send_due()

    async def end_turns(self, seconds: float) -> None:
        """Begin no more turns, wait up to ``seconds`` for the running ones, and hand the rest back."""
        await self._turns.end(seconds)

    async def _recover(self) -> None:
        """Recover from crashes. No platform is connected here, so deliveries are marked as possibly repeated."""
        await self._runtime.release_dead_nodes()
        if not self._has_gateway:
            await recover_all(self._runtime, deduplicating=frozenset())
            await expire_questions(self._runtime)

    async def _send_heartbeat(self) -> None:
        await send_heartbeat(self._runtime, "chat")

    async def _keep_connector(self) -> None:
        await self._take_connector()
        if self._connector is not None:
            await self._runtime.sleep(RENEW_EVERY / SECOND)

    async def _take_connector(self) -> None:
        """Take or renew the connector lease. Without the lease, this terminal only shows deliveries."""
        held = await take_connector_lease(self._runtime, self._adapter)
        if held is None:
            self._connector = self._dispatcher = None
        elif self._connector is None or not self._connector.extend(held):
            self._connector, self._dispatcher = held, Dispatcher(self._runtime, self._adapter, held)


async def accept_line(runtime: Runtime, chat: LocalChat, text: str, *, ref: str) -> Accepted:
    """Accept a line of a terminal, with a reference that is new; raise ``NotAllowed`` if the owner is blocked."""
    inbound = Inbound(source=chat.source, ref=ref, parts=(TextPart(text=text),))
    outcome = await runtime.write_with_retry(
        lambda tx: accept_message(
            tx, inbound, settings=chat.settings, ids=runtime.ids, commands=runtime.commands
        ),
        what="the terminal",
    )
    if isinstance(outcome, Refused):
        raise NotAllowed("The message was not accepted: the owner of this profile is blocked.")
    assert isinstance(outcome, Accepted), "the reference is new"
    return outcome


async def _release_dead_terminals(runtime: Runtime, chat: LocalChat) -> None:
    """Release the chat's leases whose terminals on this machine were killed, instead of waiting for their expiry."""
    for held in await runtime.database.read(lambda tx: list_leases(tx, chat)):
        if held.host == socket.gethostname() and not is_alive(held.pid):
            try:
                await runtime.database.write(partial(_release, held=held, chat=chat, ids=runtime.ids))
            except LeaseLost:
                continue  # the lease expired, or another terminal was faster


def is_alive(pid: int) -> bool:
    """Return whether a process of this machine runs, also if we may not send it signals."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _release(tx: Tx, held: HeldLease, *, chat: LocalChat, ids: Ids) -> None:
    if held.turn_id is None or held.session_id is None:
        address = chat.address
        connector = Connector(
            platform=address.platform, account=address.account or "", holder=held.holder, epoch=held.epoch
        )
        release_connector(tx, connector)
        return
    session_id = SessionId(held.session_id)
    lease = Lease(session_id=session_id, holder=held.holder, epoch=held.epoch, expires_at=tx.lease_now)
    failure = Failure(reason=KILLED, retry_at=tx.now)
    fail_turn(tx, TurnLease(lease=lease, turn_id=held.turn_id), failure=failure, ids=ids)
