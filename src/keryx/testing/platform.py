"""A fake platform for tests: it records messages, redelivers, reorders, limits, cuts connections and loses receipts.

It plays the service, not our code: an adapter from ``adapter`` talks to it as to any service, and it outlives killed
gateways. ``shown`` contains the messages that users see, whatever a gateway believes.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import field
from itertools import count
from typing import Literal

from keryx.clock import SECOND, Micros
from keryx.core.conversations.rules.command import Command
from keryx.core.conversations.rules.part import Part, TextPart
from keryx.core.conversations.rules.source import ChatType, Source
from keryx.core.deliveries.rules.delivery import Outcome, Rejected, Sent, Unknown
from keryx.core.deliveries.rules.pieces import Piece, TextPiece
from keryx.core.deliveries.rules.route import Address, split_at_first_colon
from keryx.core.deliveries.rules.text import text_pieces
from keryx.core.people.rules.access import Refused
from keryx.core.turns.rules.inbox import Inbound
from keryx.platforms.adapter import Capabilities, Malformed, Outgoing, Update
from keryx.values import dataclass

PlatformFault = Literal[
    "reject", "lose the message", "lose the receipt", "limit", "refuse permanently", "dead"
]
"""A fault for a message. A sender cannot distinguish a lost message from a lost receipt."""


@dataclass(slots=True)
class Shown:
    """A message as users see it on the platform."""

    id: str
    to: Address
    texts: list[str]
    """The versions of the text, oldest first: an edited message has several."""
    key: str
    reply_to: str | None

    @property
    def text(self) -> str:
        """The current text."""
        return self.texts[-1]


@dataclass(slots=True)
class FakePlatform:
    """The platform's service."""

    name: str = "fake"
    capabilities: Capabilities = field(default_factory=lambda: Capabilities(text_max=4_096))
    account: str | None = None
    shown: list[Shown] = field(default_factory=list)
    typing: list[Address] = field(default_factory=list)
    menu: list[str] = field(default_factory=list)
    """The names of the commands in the platform's menu."""
    acknowledged: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """The refs of messages whose authors were refused."""
    gone: set[str] = field(default_factory=set)
    """Dead chats: their users blocked the account, or left."""
    turned_away: list[Outgoing] = field(default_factory=list)
    """The messages that the platform refused because the chat was dead."""
    before_send: Callable[[Outgoing], PlatformFault | None] = lambda _: None
    """Called before every send and edit; returns the fault for it, if any."""
    limit: Micros = 5 * SECOND
    """The ``retry_after`` of a rate limit."""
    _waiting: dict[int, Update] = field(default_factory=dict)
    """The unacknowledged updates in order, by a delivery number: the same update may be there twice."""
    _numbers: "count[int]" = field(default_factory=lambda: count(1))
    _deliveries: "count[int]" = field(default_factory=count)
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _cuts: int = 0

    def say(
        self,
        text: str,
        *,
        chat: str = "1",
        user: str = "ana",
        chat_type: ChatType = "dm",
        ref: str | None = None,
    ) -> Inbound:
        """Let a user send a message; return the update, which ``deliver`` sends again."""
        number = next(self._numbers)
        source = self.source(user, chat=chat, chat_type=chat_type, message_id=f"in-{number}")
        inbound = Inbound(source=source, ref=ref or f"update-{number}", parts=(TextPart(text=text),))
        self.deliver(inbound)
        return inbound

    def source(
        self, user: str, *, chat: str | None = None, chat_type: ChatType = "dm", message_id: str | None = None
    ) -> Source:
        """Return the source of a user's message; the default chat has the user's id."""
        return Source(
            platform=self.name,
            account=self.account,
            chat_id=chat or user,
            chat_type=chat_type,
            user_id=user,
            user_name=user.title(),
            message_id=message_id,
        )

    @property
    def has_unacknowledged(self) -> bool:
        """Whether there are unacknowledged updates."""
        return bool(self._waiting)

    def deliver(self, update: Update) -> None:
        """Deliver an update, also a second time."""
        self._waiting[next(self._deliveries)] = update
        self._news.set()

    def send_malformed(self, raw: str) -> None:
        """Deliver a malformed update."""
        self.deliver(Malformed(ref=f"update-{next(self._numbers)}", raw=raw, reason="not JSON"))

    def reorder(self) -> None:
        """Reverse the order of the unacknowledged updates."""
        self._waiting = dict(reversed(self._waiting.items()))

    def cut(self) -> None:
        """Cut the connections that receive updates."""
        self._cuts += 1
        self._news.set()

    def said_to(self, chat: str) -> list[str]:
        """Return the texts that users see in a chat, oldest first."""
        return [each.text for each in self.shown if each.to.chat_id == chat]

    def adapter(self) -> "FakeAdapter":
        """Return a new connection to the service."""
        return FakeAdapter(self)

    async def next_update(self, given: dict[int, Update]) -> Update:
        """Wait for an update that is not in ``given``, add it, and return it; raise if the connection is cut."""
        cuts = self._cuts
        while not (new := [number for number in self._waiting if number not in given]):
            self._news.clear()
            await self._news.wait()
            if self._cuts != cuts:
                raise ConnectionResetError("the connection was cut")
        given[new[0]] = self._waiting[new[0]]
        return given[new[0]]

    def acknowledge(self, update: Update, given: dict[int, Update]) -> None:
        """Remove an update that a connection was given."""
        self.acknowledged.append(update.ref)
        for number, waiting in given.items():
            if waiting == update and self._waiting.pop(number, None) is not None:
                return

    def receive_message(self, outgoing: Outgoing, *, message_id: str | None) -> Outcome:
        """Show a message, or edit the one with ``message_id``."""
        fault = "dead" if outgoing.to.chat_id in self.gone else self.before_send(outgoing)
        if fault == "dead":
            self.turned_away.append(outgoing)
        if fault == "limit":
            return Rejected(reason="too many", retry_after=self.limit)
        if fault is not None and fault != "lose the receipt":
            return _OUTCOMES[fault]
        if message_id is not None and not self.capabilities.edits:
            return Rejected(reason="this platform does not edit messages", permanent=True)
        assert isinstance(outgoing.piece, TextPiece), "this platform shows texts only"
        known = [
            each
            for each in self.shown
            if each.id == message_id or (self.capabilities.deduplicates and each.key == outgoing.key)
        ]
        if message_id is not None and not known:
            return Rejected(reason="there is no such message", permanent=True)
        if known:
            shown = known[0]
            if message_id is not None:  # a repeated send is the same message and changes nothing
                shown.texts.append(outgoing.piece.text)
        else:
            shown = Shown(
                id=f"out-{next(self._numbers)}",
                to=outgoing.to,
                texts=[outgoing.piece.text],
                key=outgoing.key,
                reply_to=outgoing.reply_to,
            )
            self.shown.append(shown)
        return Unknown() if fault else Sent(message_id=shown.id)


_OUTCOMES: dict[PlatformFault, Outcome] = {
    "reject": Rejected(reason="try again"),
    "lose the message": Unknown(),
    "refuse permanently": Rejected(reason="not like this", permanent=True),
    "dead": Rejected(reason="the chat is gone", dead_address=True),
}


class FakeAdapter:
    """One connection to the fake platform."""

    def __init__(self, service: FakePlatform) -> None:
        self._service = service
        self.platform = service.name
        self.account = service.account
        self.capabilities = service.capabilities
        self._given: dict[int, Update] = {}

    async def connect(self) -> None:
        """Return at once: the service is always reachable."""

    async def receive(self) -> AsyncGenerator[Update, None]:
        """Yield the unacknowledged updates, in order."""
        self._given = {}
        while True:
            yield await self._service.next_update(self._given)

    async def acknowledge(self, update: Update, *, refused: Refused | None = None) -> None:
        """Acknowledge an update; a refused author gets no answer."""
        await asyncio.sleep(0)
        if refused is not None:
            self._service.refused.append(update.ref)
        self._service.acknowledge(update, self._given)

    def pieces(self, parts: tuple[Part, ...]) -> tuple[Piece, ...]:
        """Return the texts, split to the platform's limit."""
        return text_pieces(parts, text_max=self.capabilities.text_max, unit=self.capabilities.text_unit)

    async def send(self, outgoing: Outgoing) -> Outcome:
        """Send a message."""
        await asyncio.sleep(0)
        return self._service.receive_message(outgoing, message_id=None)

    async def edit(self, outgoing: Outgoing, *, message_id: str) -> Outcome:
        """Edit a message."""
        await asyncio.sleep(0)
        return self._service.receive_message(outgoing, message_id=message_id)

    def split_chat(self, text: str) -> tuple[str, str | None]:
        """Split a chat and a thread; an id that begins with "!" is a room and its server, as on Matrix."""
        if not text.startswith("!"):
            return split_at_first_colon(text)
        room, _, rest = text.partition(":")
        server, thread = split_at_first_colon(rest)
        return f"{room}:{server}", thread

    async def offer_commands(self, commands: Sequence[Command]) -> None:
        """Put the commands into the menu, if the platform has one."""
        await asyncio.sleep(0)
        if self.capabilities.has_menu:
            self._service.menu = [command.name for command in commands]

    async def show_typing(self, to: Address) -> None:
        """Record a typing indicator."""
        self._service.typing.append(to)

    async def close(self) -> None:
        """Do nothing: the adapter holds no resources."""
