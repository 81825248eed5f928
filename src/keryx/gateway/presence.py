"""Shows that an answer is being written, while a turn runs whose answer goes to an account that can show it.

It is a courtesy: whatever goes wrong is logged and changes nothing.
"""

import asyncio

from keryx.clock import SECOND, Micros
from keryx.domain.route import Address
from keryx.domain.turn import TurnId
from keryx.gateway.desk import Desk, endlessly
from keryx.gateway.log import concerning, log_of
from keryx.platforms.adapter import Adapter
from keryx.views.turn import list_answering

TYPING_EVERY: Micros = 4 * SECOND
"""Platforms take the sign away after about five seconds."""
LOOK_SECONDS = 1.0

_log = log_of("presence")


async def show_typing(desk: Desk, adapter: Adapter) -> None:
    """Show it, again and again, until cancelled."""
    presence = _Presence(desk, adapter)
    await endlessly(desk, "the sign of typing", presence.show_due, seconds=LOOK_SECONDS)


class _Presence:
    """Remembers when it was last shown for which turn."""

    def __init__(self, desk: Desk, adapter: Adapter) -> None:
        self._desk = desk
        self._adapter = adapter
        self._shown: dict[TurnId, Micros] = {}

    async def show_due(self) -> None:
        """Show it for every turn for which it has not been shown lately; forget those that are over."""
        account = (self._adapter.platform, self._adapter.account or "")
        answering = {
            turn.id: (turn.session_id, Address.of(turn.origin))
            for turn in await self._desk.database.read(list_answering)
            if turn.origin is not None and (turn.origin.platform, turn.origin.account or "") == account
        }
        now = self._desk.clock.monotonic()
        due = {
            turn_id: place
            for turn_id, place in answering.items()
            if turn_id not in self._shown or now - self._shown[turn_id] >= TYPING_EVERY
        }
        self._shown = {turn_id: now if turn_id in due else self._shown[turn_id] for turn_id in answering}
        await asyncio.gather(*(self._show(turn_id, *place) for turn_id, place in due.items()))

    async def _show(self, turn_id: TurnId, session_id: str, address: Address) -> None:
        with concerning(session=session_id, turn=turn_id):
            try:
                await self._adapter.show_typing(address)
            except Exception as error:  # noqa: BLE001 - an adapter is somebody else's code, and this is no promise
                _log.failed("the sign of typing could not be shown", error=error)
