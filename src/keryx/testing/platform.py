"""A platform for tests: it keeps its own books, redelivers, reorders, limits, cuts connections and loses receipts.

It stands for the service, not for our code: an adapter made by ``adapter`` talks to it as to any other, and it outlives
gateways that are killed. What was said there is in ``shown``, whatever a gateway believes.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import field
from itertools import count
from typing import Literal

from keryx.clock import SECOND, Micros
from keryx.domain.access import Refused
from keryx.domain.command import Command
from keryx.domain.inbox import Inbound
from keryx.domain.outbox import Outcome, Rejected, Sent, Unknown
from keryx.domain.part import Part, TextPart
from keryx.domain.route import Address, split_at_first_colon
from keryx.domain.source import ChatType, Source
from keryx.platforms.adapter import Capabilities, Malformed, Outgoing, Piece, TextPiece, Update
from keryx.platforms.text import text_pieces
from keryx.values import dataclass

Trouble = Literal["reject", "lose the message", "lose the receipt", "limit", "refuse for good", "dead"]
"""What goes wrong with a message; who sent one that was lost knows no more than of one whose receipt was."""


@dataclass(slots=True)
class Shown:
    """A message as people see it there."""

    id: str
    to: Address
    texts: list[str]
    """What it said, oldest first: a message that was changed has several."""
    key: str
    reply_to: str | None

    @property
    def text(self) -> str:
        """What it says now."""
        return self.texts[-1]


@dataclass(slots=True)
class FakePlatform:
    """The service."""

    name: str = "fake"
    capabilities: Capabilities = field(default_factory=lambda: Capabilities(text_max=4_096))
    account: str | None = None
    shown: list[Shown] = field(default_factory=list)
    typing: list[Address] = field(default_factory=list)
    menu: list[str] = field(default_factory=list)
    """The names of the commands it offers people."""
    acknowledged: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """What it was told of authors who may not speak, by the refs of their messages."""
    gone: set[str] = field(default_factory=set)
    """Chats to which nothing can be sent now: their people blocked the account, or left."""
    turned_away: list[Outgoing] = field(default_factory=list)
    """What it was asked to show and never will, because the chat was gone."""
    before_send: Callable[[Outgoing], Trouble | None] = lambda _: None
    """Asked before every send and edit: what goes wrong with it, if anything."""
    limit: Micros = 5 * SECOND
    """How long it wants to be left alone when it says that there is too much."""
    _waiting: dict[int, Update] = field(default_factory=dict)
    """What is not acknowledged, in order, by a number of its own: the same update may be there twice."""
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
        """Let somebody say something; returns the update, which ``redeliver`` sends again."""
        number = next(self._numbers)
        source = self.source(user, chat=chat, chat_type=chat_type, message_id=f"in-{number}")
        inbound = Inbound(source=source, ref=ref or f"update-{number}", parts=(TextPart(text=text),))
        self.deliver(inbound)
        return inbound

    def source(
        self, user: str, *, chat: str | None = None, chat_type: ChatType = "dm", message_id: str | None = None
    ) -> Source:
        """Return where a user speaks; without a chat, in one that bears the user's name."""
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
    def is_waiting(self) -> bool:
        """Whether something was not acknowledged yet."""
        return bool(self._waiting)

    def deliver(self, update: Update) -> None:
        """Let an update arrive, again if it has before."""
        self._waiting[next(self._deliveries)] = update
        self._news.set()

    def garble(self, raw: str) -> None:
        """Let something arrive that nobody can read."""
        self.deliver(Malformed(ref=f"update-{next(self._numbers)}", raw=raw, reason="not JSON"))

    def reorder(self) -> None:
        """Turn the order of what is not acknowledged around."""
        self._waiting = dict(reversed(self._waiting.items()))

    def cut(self) -> None:
        """Cut the connections on which updates are received."""
        self._cuts += 1
        self._news.set()

    def said_to(self, chat: str) -> list[str]:
        """Return what people see in a chat, oldest first."""
        return [each.text for each in self.shown if each.to.chat_id == chat]

    def adapter(self) -> "FakeAdapter":
        """Return a new connection to the service."""
        return FakeAdapter(self)

    async def next_update(self, given: dict[int, Update]) -> Update:
        """Wait for an update that a connection was not ``given``, and note that it was; raises when it is cut off."""
        cuts = self._cuts
        while not (new := [number for number in self._waiting if number not in given]):
            self._news.clear()
            await self._news.wait()
            if self._cuts != cuts:
                raise ConnectionResetError("the connection was cut")
        given[new[0]] = self._waiting[new[0]]
        return given[new[0]]

    def acknowledge(self, update: Update, given: dict[int, Update]) -> None:
        """Forget an update that a connection was given."""
        self.acknowledged.append(update.ref)
        for number, waiting in given.items():
            if waiting == update and self._waiting.pop(number, None) is not None:
                return

    def receive_message(self, outgoing: Outgoing, *, message_id: str | None) -> Outcome:
        """Show a message, or change one."""
        trouble = "dead" if outgoing.to.chat_id in self.gone else self.before_send(outgoing)
        if trouble == "dead":
            self.turned_away.append(outgoing)
        if trouble == "limit":
            return Rejected(reason="too many", retry_after=self.limit)
        if trouble is not None and trouble != "lose the receipt":
            return _TROUBLES[trouble]
        if message_id is not None and not self.capabilities.edits:
            return Rejected(reason="messages stay as they are here", permanent=True)
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
            if message_id is not None:  # what is sent again is the same message, and stays as it is
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
        return Unknown() if trouble else Sent(message_id=shown.id)


_TROUBLES: dict[Trouble, Outcome] = {
    "reject": Rejected(reason="try again"),
    "lose the message": Unknown(),
    "refuse for good": Rejected(reason="not like this", permanent=True),
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
        """The service is always there."""

    async def receive(self) -> AsyncGenerator[Update, None]:
        """Yield what is not acknowledged, in order."""
        self._given = {}
        while True:
            yield await self._service.next_update(self._given)

    async def acknowledge(self, update: Update, *, refused: Refused | None = None) -> None:
        """Let the platform forget it; strangers are told nothing."""
        await asyncio.sleep(0)
        if refused is not None:
            self._service.refused.append(update.ref)
        self._service.acknowledge(update, self._given)

    def pieces(self, parts: tuple[Part, ...]) -> tuple[Piece, ...]:
        """Return the texts cut to the platform's length."""
        return text_pieces(parts, text_max=self.capabilities.text_max, unit=self.capabilities.text_unit)

    async def send(self, outgoing: Outgoing) -> Outcome:
        """Show a message."""
        await asyncio.sleep(0)
        return self._service.receive_message(outgoing, message_id=None)

    async def edit(self, outgoing: Outgoing, *, message_id: str) -> Outcome:
        """Change a message."""
        await asyncio.sleep(0)
        return self._service.receive_message(outgoing, message_id=message_id)

    def split_chat(self, text: str) -> tuple[str, str | None]:
        """Take a chat and a thread apart; ids with a mark in front are a room and its server, as on Matrix."""
        if not text.startswith("!"):
            return split_at_first_colon(text)
        room, _, rest = text.partition(":")
        server, thread = split_at_first_colon(rest)
        return f"{room}:{server}", thread

    async def offer_commands(self, commands: Sequence[Command]) -> None:
        """Show the commands in the menu, if there is one."""
        await asyncio.sleep(0)
        if self.capabilities.has_menu:
            self._service.menu = [command.name for command in commands]

    async def show_typing(self, to: Address) -> None:
        """Show that somebody writes."""
        self._service.typing.append(to)

    async def close(self) -> None:
        """Nothing is held."""
