"""The terminal's adapter keeps the parts of the contract that apply: no update arrives, and no message is half sent."""

from collections.abc import Sequence

import pytest

from keryx.core.deliveries.rules.delivery import Outcome
from keryx.core.deliveries.rules.pieces import TextPiece
from keryx.core.deliveries.rules.route import Address
from keryx.platforms.adapter import Adapter, Outgoing
from keryx.platforms.terminal.adapter import TerminalAdapter
from keryx.testing.adapter_contract import Fault, ShowingContract


class Screen:
    """A screen that shows messages by their keys and reports them as shown."""

    def __init__(self) -> None:
        self.address = Address(platform="local", chat_id="cli")
        self.lines: list[str] = []
        self._is_closed = False

    def connect(self) -> Adapter:
        return _Typing(self)

    async def say(self, text: str) -> None:
        raise NotImplementedError

    async def send_malformed(self) -> None:
        raise NotImplementedError

    async def cut(self) -> None:
        raise NotImplementedError

    def menu(self) -> Sequence[str]:
        return []

    def shown(self) -> Sequence[str]:
        return self.lines

    async def inject(self, fault: Fault | None) -> None:
        self._is_closed = fault == "down"

    async def show(self, _key: str) -> bool:
        return not self._is_closed


class _Typing(TerminalAdapter):
    """Writes on the screen what the chat itself would."""

    def __init__(self, screen: Screen) -> None:
        super().__init__(None, shown=screen.show)
        self._screen = screen

    async def send(self, outgoing: Outgoing) -> Outcome:
        outcome = await super().send(outgoing)
        if await self._screen.show(outgoing.key) and isinstance(outgoing.piece, TextPiece):
            self._screen.lines.append(outgoing.piece.text)
        return outcome


class TestTerminal(ShowingContract):
    @pytest.fixture
    def service(self) -> Screen:
        return Screen()
