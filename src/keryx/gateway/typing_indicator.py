"""Show the typing indicator in a chat while a turn answers it.

Failures are logged and change nothing.
"""

import asyncio

from keryx.clock import SECOND, Micros
from keryx.core.deliveries.rules.route import Address
from keryx.core.turns.views.turn import list_answering
from keryx.core.values.turn_states import TurnId
from keryx.gateway.runtime.log import log_ids, log_of
from keryx.gateway.runtime.runtime import Runtime, repeat_forever
from keryx.platforms.adapter import Adapter

TYPING_EVERY: Micros = 4 * SECOND
"""Platforms remove the indicator after about five seconds."""
LOOK_SECONDS = 1.0

_log = log_of("typing")


async def show_typing(runtime: Runtime, adapter: Adapter) -> None:
    """Show the indicator in every chat where a turn of this account answers, until cancelled."""
    indicator = _TypingIndicator(runtime, adapter)
    await repeat_forever(runtime, "the typing indicator", indicator.show_due, seconds=LOOK_SECONDS)


class _TypingIndicator:
    """Remembers when the indicator was last shown for each turn."""

    def __init__(self, runtime: Runtime, adapter: Adapter) -> None:
        self._runtime = runtime
        self._adapter = adapter
        self._shown: dict[TurnId, Micros] = {}

    async def show_due(self) -> None:
        """Show the indicator for every turn where it is due. Forget the turns that have ended."""
        account = (self._adapter.platform, self._adapter.account or "")
        answering = {
            turn.id: (turn.session_id, Address.of(turn.origin))
            for turn in await self._runtime.database.read(list_answering)
            if turn.origin is not None and (turn.origin.platform, turn.origin.account or "") == account
        }
        now = self._runtime.clock.monotonic()
        due = {
            turn_id: chat
            for turn_id, chat in answering.items()
            if turn_id not in self._shown or now - self._shown[turn_id] >= TYPING_EVERY
        }
        self._shown = {turn_id: now if turn_id in due else self._shown[turn_id] for turn_id in answering}
        await asyncio.gather(*(self._show(turn_id, *chat) for turn_id, chat in due.items()))

    async def _show(self, turn_id: TurnId, session_id: str, address: Address) -> None:
        with log_ids(session=session_id, turn=turn_id):
            try:
                await self._adapter.show_typing(address)
            except Exception as error:  # noqa: BLE001 - a failure only costs the indicator
                _log.failed("the typing indicator could not be shown", error=error)
