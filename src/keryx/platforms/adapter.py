"""The contract between the gateway and a platform: receive updates, send pieces, and report the true outcome.

An adapter knows no session. Its ``wire`` module parses and renders without I/O, so that both can be tested alone. The
same parts must always give the same pieces, because an interrupted delivery continues with the next piece.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol, TypeAlias

from keryx.clock import SECOND, Micros
from keryx.core.conversations.rules.command import Command
from keryx.core.conversations.rules.part import Part
from keryx.core.deliveries.rules.delivery import Outcome, Rejected
from keryx.core.deliveries.rules.pieces import Piece, TextUnit
from keryx.core.deliveries.rules.route import Address, split_at_first_colon
from keryx.core.people.rules.access import Refused
from keryx.core.turns.rules.inbox import Inbound
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The capabilities of a platform."""

    text_max: int
    """The maximum length of one message, in ``text_unit``."""
    text_unit: TextUnit = "characters"
    deduplicates: bool = False
    """Whether a message that is sent twice with the same key is shown once."""
    edits: bool = False
    """Whether a sent message can be edited, so that a preview can show a growing answer."""
    edit_every: Micros = SECOND
    shows_typing: bool = False
    has_menu: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """One piece to send. ``key`` is the same for every attempt, and different for every piece."""

    to: Address
    piece: Piece
    key: str
    reply_to: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed:
    """An update that cannot be parsed. It is stored unchanged, and later updates do not wait for it."""

    ref: str
    raw: str
    reason: str


Update: TypeAlias = Inbound | Malformed


class Adapter(Protocol):
    """One account on one platform. A class that inherits it defines only the methods that its platform supports.

    The defaults that do nothing have an explicit ``return``: to mypy, a method without a body is abstract.
    """

    platform: str
    account: str | None
    capabilities: Capabilities

    async def connect(self) -> None:
        """Listen, or sign in to the platform, before ``receive`` is called.

        Raises ``NotConnected`` if that is not possible now. Its message is logged, so it must not contain a secret.
        """
        return

    def receive(self) -> AsyncGenerator[Update, None]:
        """Yield the updates in order. An update that was not acknowledged is yielded again, also after a restart.

        This method reconnects broken connections, with growing pauses. An exception ends the account's work until the
        gateway connects again. In either case no update is lost, and a repeated update has the same reference.
        """

    async def acknowledge(self, update: Update, *, refused: Refused | None = None) -> None:
        """Tell the platform that an update is stored or refused, so that the platform may forget the update.

        ``refused`` means that the author has no access. Do not show people anything; answer a program that waits.
        """

    def pieces(self, parts: tuple[Part, ...]) -> tuple[Piece, ...]:
        """Return the pieces to send for the parts of one delivery, in order."""

    async def send(self, outgoing: Outgoing) -> Outcome:
        """Send one piece. A failure of the network or platform is ``Rejected`` or ``Unknown``, never an exception."""

    async def edit(self, outgoing: Outgoing, *, message_id: str) -> Outcome:
        """Replace a message by this piece, if the platform ``edits``. An unchanged message counts as sent."""
        return Rejected(reason=f"message {message_id} to {outgoing.to} cannot be edited", permanent=True)

    def split_chat(self, text: str) -> tuple[str, str | None]:
        """Split ``<chat>[:<thread>]`` of a route at the first colon. Override it if ids of chats contain colons."""
        return split_at_first_colon(text)

    async def offer_commands(self, commands: Sequence[Command]) -> None:  # noqa: ARG002 - does nothing by default
        """Fill the platform's menu, if it ``has_menu``. Called after every ``connect``; exceptions are logged."""
        return

    async def show_typing(self, to: Address) -> None:  # noqa: ARG002 - does nothing by default
        """Show that an answer is being written, if the platform ``shows_typing``."""
        return

    async def close(self) -> None:
        """Close all connections."""
        return
