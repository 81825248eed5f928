"""The adapter of the terminal: a delivery is sent when it stands on the screen."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Final

from keryx.core.conversations.rules.command import Command
from keryx.core.conversations.rules.part import Part
from keryx.core.deliveries.rules.delivery import Outcome, Rejected, Sent
from keryx.core.deliveries.rules.pieces import Piece
from keryx.core.deliveries.rules.route import Address, split_at_first_colon
from keryx.core.deliveries.rules.text import text_pieces
from keryx.core.people.rules.access import Refused
from keryx.platforms.adapter import Capabilities, Outgoing, Update

TEXT_MAX: Final = 1_000_000


class TerminalAdapter:
    """The adapter of one terminal. It shows nothing itself: it waits until the display has shown a delivery."""

    platform = "local"
    capabilities = Capabilities(text_max=TEXT_MAX)

    def __init__(self, account: str | None, *, shown: Callable[[str], Awaitable[bool]]) -> None:
        self.account = account
        self._shown = shown

    async def connect(self) -> None:
        """Do nothing: the terminal is always there."""

    async def receive(self) -> AsyncGenerator[Update, None]:
        """Yield nothing: the chat accepts each line where it reads the keyboard."""
        nothing: tuple[Update, ...] = ()
        for update in nothing:
            yield update

    async def acknowledge(self, update: Update, *, refused: Refused | None = None) -> None:
        """Do nothing: no service waits for it."""

    def pieces(self, parts: tuple[Part, ...]) -> tuple[Piece, ...]:
        """Return each part as it is."""
        return text_pieces(parts, text_max=TEXT_MAX)

    async def send(self, outgoing: Outgoing) -> Outcome:
        """Wait until the delivery stands on the screen."""
        key, _, _piece = outgoing.key.rpartition("-")
        return Sent(message_id=None) if await self._shown(key) else Rejected(reason="the terminal was closed")

    async def edit(self, outgoing: Outgoing, *, message_id: str) -> Outcome:
        """Refuse: text on a terminal cannot be changed."""
        return Rejected(reason=f"{message_id} at {outgoing.to} cannot be changed", permanent=True)

    def split_chat(self, text: str) -> tuple[str, str | None]:
        """Split a chat and a thread."""
        return split_at_first_colon(text)

    async def offer_commands(self, commands: Sequence[Command]) -> None:
        """Do nothing: the keyboard completes commands as they are typed."""

    async def show_typing(self, to: Address) -> None:
        """Do nothing: the status line shows what runs."""

    async def close(self) -> None:
        """Do nothing: the adapter holds no resources."""
