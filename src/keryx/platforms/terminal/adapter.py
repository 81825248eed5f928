"""The adapter of the terminal: a delivery is sent when it is on the screen."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

from keryx.core.conversations.rules.part import Part
from keryx.core.deliveries.rules.delivery import Outcome, Rejected, Sent
from keryx.core.deliveries.rules.pieces import Piece
from keryx.core.deliveries.rules.text import text_pieces
from keryx.core.people.rules.access import Refused
from keryx.platforms.adapter import Adapter, Capabilities, Outgoing, Update

TEXT_MAX: Final = 1_000_000


class TerminalAdapter(Adapter):
    """The adapter of one terminal. It shows nothing itself: it waits until the display has shown a delivery."""

    platform = "local"
    capabilities = Capabilities(text_max=TEXT_MAX)

    def __init__(self, account: str | None, *, shown: Callable[[str], Awaitable[bool]]) -> None:
        self.account = account
        self._shown = shown

    async def receive(self) -> AsyncGenerator[Update, None]:
        """Yield nothing: the chat accepts each line where it reads the keyboard."""
        nothing: tuple[Update, ...] = ()
        for update in nothing:
            yield update

    async def acknowledge(self, update: Update, *, refused: Refused | None = None) -> None:
        """Do nothing: no service waits for an answer."""

    def pieces(self, parts: tuple[Part, ...]) -> tuple[Piece, ...]:
        """Return each part as it is."""
        return text_pieces(parts, text_max=TEXT_MAX)

    async def send(self, outgoing: Outgoing) -> Outcome:
        """Return when the delivery is on the screen, or the terminal is closed."""
        key, _, _piece = outgoing.key.rpartition("-")
        return Sent(message_id=None) if await self._shown(key) else Rejected(reason="the terminal was closed")
