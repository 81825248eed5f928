"""A terminal's part in the work: it runs its own conversation's turns, and records what it has shown as sent.

Nothing is shown or read here. While a gateway is on the store it runs no turn, only what it began before; and what a
terminal of this machine held that was killed is let go, so that nobody waits for its leases to run out.
"""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from types import TracebackType
from typing import Final, Self

from keryx.agents.agent import Agent
from keryx.clock import SECOND
from keryx.domain.access import Refused
from keryx.domain.command import Command
from keryx.domain.lease import RENEW_EVERY, Lease
from keryx.domain.outbox import Outcome, Rejected, Sent
from keryx.domain.part import Part
from keryx.domain.route import Address, split_at_first_colon
from keryx.domain.session import SessionId
from keryx.errors import LeaseLost, StoreUnavailable
from keryx.gateway.commands import answer_waiting
from keryx.gateway.desk import Desk, endlessly
from keryx.gateway.dispatch import Dispatcher
from keryx.gateway.expiry import RECOVER_SECONDS, expire_questions, recover_all
from keryx.gateway.hold import Hold, take_hold
from keryx.gateway.node import give_sign
from keryx.gateway.turns import TurnLoop
from keryx.platforms.adapter import Capabilities, Outgoing, Piece, Update
from keryx.platforms.text import text_pieces
from keryx.store.database import Tx
from keryx.tools.tool import Toolbox
from keryx.transactions.deliveries import Connector, release_connector
from keryx.transactions.fail_turn import Failure, fail_turn
from keryx.transactions.leave_place import leave_places
from keryx.transactions.recover import BATCH
from keryx.transactions.work_as_node import leave_node
from keryx.views.said import Holder, Look, Place, is_at_work, list_holders

TEXT_MAX: Final = 1_000_000
TURN_SECONDS_MAX: Final = 86_400.0
ACCOUNT_SECONDS: Final = 1.0
"""How often a terminal asks for the account of its place while another one has it."""
KILLED: Final = "the terminal in which it was being answered was ended"

_log = logging.getLogger("keryx.cli.chat")


class TerminalAdapter:
    """A terminal as a platform: a message is sent when it is shown, which is not done here but waited for."""

    platform = "local"
    capabilities = Capabilities(text_max=TEXT_MAX)

    def __init__(self, account: str | None, *, shown: Callable[[str], Awaitable[bool]]) -> None:
        self.account = account
        self._shown = shown

    async def connect(self) -> None:
        """The terminal is there."""

    async def receive(self) -> AsyncGenerator[Update, None]:
        """Yield nothing: what is typed is accepted where it is read."""
        nothing: tuple[Update, ...] = ()
        for update in nothing:
            yield update

    async def acknowledge(self, update: Update, *, refused: Refused | None = None) -> None:
        """Nobody waits for it."""

    def pieces(self, parts: tuple[Part, ...]) -> tuple[Piece, ...]:
        """Return each part as it is."""
        return text_pieces(parts, text_max=TEXT_MAX)

    async def send(self, outgoing: Outgoing) -> Outcome:
        """Wait until it stands on the screen."""
        key, _, _piece = outgoing.key.rpartition("-")
        return Sent(message_id=None) if await self._shown(key) else Rejected(reason="the terminal was closed")

    async def edit(self, outgoing: Outgoing, *, message_id: str) -> Outcome:
        """Refuse: what stands on a terminal stays as it is."""
        return Rejected(reason=f"{message_id} at {outgoing.to} cannot be changed", permanent=True)

    def split_chat(self, text: str) -> tuple[str, str | None]:
        """Take a chat and a thread apart."""
        return split_at_first_colon(text)

    async def offer_commands(self, commands: Sequence[Command]) -> None:
        """Offer nothing: the terminal completes them as they are typed."""

    async def show_typing(self, to: Address) -> None:
        """The status line shows it."""

    async def close(self) -> None:
        """Nothing is held."""


class Presence:
    """A terminal at work on the store, for the length of an ``async with`` block."""

    def __init__(
        self, desk: Desk, agent: Agent, toolbox: Toolbox, *, place: Place, adapter: TerminalAdapter
    ) -> None:
        self._desk = desk
        self._agent = agent
        self._toolbox = toolbox
        self._place = place
        self._adapter = adapter
        self._hold: Hold | None = None
        self._dispatcher: Dispatcher | None = None
        self._loops: dict[str, tuple[TurnLoop, asyncio.Task[None]]] = {}
        self._retiring: dict[asyncio.Task[None], TurnLoop] = {}
        self._commanding: asyncio.Task[int] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._has_gateway = False
        self._is_ending = False

    @property
    def records(self) -> bool:
        """Whether this terminal is the one that records what is shown as sent."""
        return self._hold is not None

    async def __aenter__(self) -> Self:
        """Sign in, let go of what the dead held, and ask for the account."""
        await self._sign()
        await self._bury()
        await self._take_account()
        await self._recover()
        seconds = RENEW_EVERY / SECOND
        self._tasks = [
            asyncio.create_task(endlessly(self._desk, "the sign of life", self._sign, seconds=seconds)),
            asyncio.create_task(
                endlessly(self._desk, "the terminal", self._keep_account, seconds=ACCOUNT_SECONDS)
            ),
            asyncio.create_task(endlessly(self._desk, "recovery", self._recover, seconds=RECOVER_SECONDS)),
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Hand back what still runs and let go of everything."""
        await self.end_turns(0)
        tasks = [*self._tasks, *([self._commanding] if self._commanding else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        hold, holder, profile = self._hold, self._desk.holder, self._desk.settings.profile

        def leave(tx: Tx) -> None:
            if hold is not None:
                release_connector(tx, hold.connector)
            leave_places(tx, profile=profile, limit=BATCH)
            leave_node(tx, holder=holder)

        try:
            await self._desk.write(leave)
        except StoreUnavailable as unavailable:
            _log.warning("the store is away: %s", unavailable)
        await self._agent.close()

    async def act_on(self, look: Look) -> None:
        """Do what a look shows to be done here."""
        self._has_gateway = look.has_gateway
        await self._run_turns(look)
        if look.commands and not look.has_gateway and (self._commanding is None or self._commanding.done()):
            self._commanding = asyncio.create_task(answer_waiting(self._desk))
        if look.to_send and self._dispatcher is not None:
            await self._dispatcher.send_due()

    async def end_turns(self, seconds: float) -> None:
        """Let what runs here finish for so long and hand the rest back; nothing more begins."""
        self._is_ending = True
        for session_id in list(self._loops):
            self._retire(session_id)
        await asyncio.gather(*(loop.drain(seconds) for loop in list(self._retiring.values())))
        await asyncio.gather(*self._retiring, return_exceptions=True)

    async def _run_turns(self, look: Look) -> None:
        """Run the turns of the conversation while there are any; what was begun in another one is finished."""
        current, is_ours = look.session_id, not (look.has_gateway or self._is_ending)
        if current is not None and look.is_due and is_ours and current not in self._loops:
            loop = TurnLoop(
                self._desk, self._agent, self._toolbox, session_id=SessionId(current), turns_max=1
            )
            self._loops[current] = (loop, asyncio.create_task(loop.run(), name=f"keryx-turns-{current}"))
            return
        for session_id, (loop, _task) in list(self._loops.items()):
            # Not while a turn runs, also one just begun: a loop that ends no longer hears that it is to stop.
            if not loop.running and not await self._is_at_work(session_id):
                self._retire(session_id)

    async def _is_at_work(self, session_id: str) -> bool:
        return await self._desk.database.read(lambda tx: is_at_work(tx, session_id))

    def _retire(self, session_id: str) -> None:
        """Begin no more turns of a session, and forget it when the last one is over."""
        if session_id not in self._loops:
            return  # while somebody looked, the person left
        loop, task = self._loops.pop(session_id)

        async def retire() -> None:
            await loop.drain(TURN_SECONDS_MAX)
            await task

        retiring = asyncio.create_task(retire())
        self._retiring[retiring] = loop
        retiring.add_done_callback(self._retiring.pop)

    async def _recover(self) -> None:
        """Take up what a crash left; on a platform that is not connected here, so that a repetition is marked."""
        await self._desk.bury()
        if not self._has_gateway:
            await recover_all(self._desk, deduplicating=frozenset())
            await expire_questions(self._desk)

    async def _sign(self) -> None:
        await give_sign(self._desk, "chat")

    async def _keep_account(self) -> None:
        await self._take_account()
        if self._hold is not None:
            await self._desk.pace.sleep(RENEW_EVERY / SECOND)

    async def _take_account(self) -> None:
        """Take the account of the place, or keep it; without it this terminal shows, and another one records."""
        hold = await take_hold(self._desk, self._adapter)
        if hold is None:
            self._hold = self._dispatcher = None
        elif self._hold is None or not self._hold.keep(hold):
            self._hold, self._dispatcher = hold, Dispatcher(self._desk, self._adapter, hold)

    async def _bury(self) -> None:
        """Let go of what terminals of this machine held that are no more."""
        place = self._place
        for held in await self._desk.database.read(lambda tx: list_holders(tx, place)):
            if held.host == socket.gethostname() and not is_alive(held.pid):
                try:
                    await self._desk.write(lambda tx, held=held: self._let_go(tx, held))  # type: ignore[misc]
                except LeaseLost:
                    continue  # its time was up, or somebody else was faster

    def _let_go(self, tx: Tx, held: Holder) -> None:
        if held.turn_id is None or held.session_id is None:
            adapter = self._adapter
            release_connector(
                tx,
                Connector(
                    platform=adapter.platform,
                    account=adapter.account or "",
                    holder=held.holder,
                    epoch=held.epoch,
                ),
            )
            return
        lease = Lease(
            session_id=SessionId(held.session_id),
            holder=held.holder,
            epoch=held.epoch,
            expires_at=tx.lease_now,
        )
        failure = Failure(reason=KILLED, retry_at=tx.now)
        fail_turn(tx, lease, turn_id=held.turn_id, failure=failure, ids=self._desk.ids)


def is_alive(pid: int) -> bool:
    """Say whether a process of this machine is there; one that we may not signal is."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
