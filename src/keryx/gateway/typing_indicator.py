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
    account = (adapter.platform, adapter.account or "")
    shown_at: dict[TurnId, Micros] = {}

    async def show(turn_id: TurnId, session_id: str, address: Address) -> None:
        with log_ids(session=session_id, turn=turn_id):
            try:
                await adapter.show_typing(address)
            except Exception as error:  # noqa: BLE001 - a failure only costs the indicator
                _log.failed("the typing indicator could not be shown", error=error)

    async def show_due() -> None:
        """Show the indicator for every turn where it is due. Forget the turns that have ended."""
        answering = {
            turn.id: (turn.session_id, Address.of(turn.origin))
            for turn in await runtime.database.read(list_answering)
            if turn.origin is not None and (turn.origin.platform, turn.origin.account or "") == account
        }
        now = runtime.clock.monotonic()
        for ended in shown_at.keys() - answering.keys():
            del shown_at[ended]
        due = {
            turn_id: chat
            for turn_id, chat in answering.items()
            if turn_id not in shown_at or now - shown_at[turn_id] >= TYPING_EVERY
        }
        shown_at.update(dict.fromkeys(due, now))
        await asyncio.gather(*(show(turn_id, *chat) for turn_id, chat in due.items()))

    await repeat_forever(runtime, "the typing indicator", show_due, seconds=LOOK_SECONDS)
