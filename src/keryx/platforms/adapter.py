"""What the gateway knows of a platform: updates come in, pieces go out, and each says honestly what became of it.

An adapter knows no session. Its ``wire`` module reads and renders without I/O, so that both can be tested alone; the
same parts always give the same pieces, because a delivery that was cut off goes on with the next one.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol, TypeAlias

from keryx.clock import SECOND, Micros
from keryx.core.conversations.rules.command import Command
from keryx.core.conversations.rules.part import Part
from keryx.core.deliveries.rules.delivery import Outcome
from keryx.core.deliveries.rules.pieces import Piece, TextUnit
from keryx.core.deliveries.rules.route import Address
from keryx.core.people.rules.access import Refused
from keryx.core.turns.rules.inbox import Inbound
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a platform can do."""

    text_max: int
    """How long one message may be, in ``text_unit``."""
    text_unit: TextUnit = "characters"
    deduplicates: bool = False
    """Whether a message sent twice under one key is shown once."""
    edits: bool = False
    """Whether a message can be changed after it was sent, so that an answer can be watched growing."""
    edit_every: Micros = SECOND
    """The shortest time between two changes of a message."""
    shows_typing: bool = False
    has_menu: bool = False
    """Whether the platform shows people a menu of commands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """One piece on its way; ``key`` is the same at every attempt, and another for every piece."""

    to: Address
    piece: Piece
    key: str
    reply_to: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed:
    """An update that could not be read: it is kept as it came, and what comes after it is not held up."""

    ref: str
    raw: str
    reason: str


Update: TypeAlias = Inbound | Malformed


class Adapter(Protocol):
    """One account on one platform."""

    platform: str
    account: str | None
    capabilities: Capabilities

    async def connect(self) -> None:
        """Begin to listen, or to be known to the platform, where that comes before receiving.

        Raises ``NotConnected`` where that cannot be now; its words are logged, so nothing secret is in them.
        """

    def receive(self) -> AsyncGenerator[Update, None]:
        """Yield what arrives, in order; what was not acknowledged comes again, also after a restart.

        Connections that break are made again here, with growing pauses; whatever is raised ends the account's work
        until the gateway tries again. Either way nothing is lost by it, and what comes again bears its ref.
        """

    async def acknowledge(self, update: Update, *, refused: Refused | None = None) -> None:
        """Tell the platform that an update is stored, or will never be; only now may it forget it.

        ``refused`` says that its author may not speak. On a platform of people nothing is shown of that; a program
        that waits for an answer is told.
        """

    def pieces(self, parts: tuple[Part, ...]) -> tuple[Piece, ...]:
        """Return what is sent for the parts of one delivery, in order."""

    async def send(self, outgoing: Outgoing) -> Outcome:
        """Send one piece. Never raises for what a network or a platform does: it is ``Rejected`` or ``Unknown``."""

    async def edit(self, outgoing: Outgoing, *, message_id: str) -> Outcome:
        """Change a message into this piece; one that is so already counts as sent."""

    def split_chat(self, text: str) -> tuple[str, str | None]:
        """Take ``<chat>[:<thread>]`` of a route apart; joining the two with a colon is its inverse.

        ``split_at_first_colon`` does where chat ids have no colon.
        """

    async def offer_commands(self, commands: Sequence[Command]) -> None:
        """Fill the platform's own menu, where ``has_menu``; called after ``connect``, each time. It may raise."""

    async def show_typing(self, to: Address) -> None:
        """Show that an answer is being written, where the platform can."""

    async def close(self) -> None:
        """Let go of connections."""
