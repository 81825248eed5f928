"""When the turns of a conversation began, as their models are told."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from keryx.core.context.rules.cover import Cover
from keryx.core.context.rules.turn_time import time_line
from keryx.core.conversations.rules.message import Message
from keryx.core.turns.tables import turns
from keryx.core.values.turn_states import TurnId
from keryx.store.database import ReadTx

__all__ = ["time_lines"]


def time_lines(
    tx: ReadTx, messages: Sequence[Message | Cover], *, running: turns.Turn
) -> Mapping[TurnId, str]:
    """Return the line of each turn of these messages, and of the running turn.

    Turns that began before zones were recorded have none. A fork shows turns of other sessions, too.
    """
    shown: dict[str, set[TurnId]] = defaultdict(set)
    shown[running.session_id].add(running.id)
    for each in messages:
        if isinstance(each, Message) and each.turn_id is not None:
            shown[each.session_id].add(each.turn_id)
    return {
        turn_id: time_line(begun_at, zone)
        for session_id, turn_ids in shown.items()
        for turn_id, begun_at, zone in turns.list_times(
            tx, session_id, first=min(turn_ids), last=max(turn_ids)
        )
        if turn_id in turn_ids
    }
