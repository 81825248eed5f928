"""The line that tells a model when a turn began, and its place in the conversation. Pure.

A turn keeps its line at the same place for good: later prompts begin with the same bytes, so that providers can cache
them.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Final

from keryx.clock import Micros
from keryx.core.context.rules.cover import Cover
from keryx.core.conversations.rules.message import Message, NewMessage
from keryx.core.values.time_zone import datetime_of, zone_of
from keryx.core.values.turn_states import TurnId
from keryx.errors import InvalidValue

_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def time_line(begun_at: Micros, zone: str) -> str:
    """Return the line for a turn that began at this time; in UTC if this machine does not know the zone."""
    try:
        moment = datetime_of(begun_at, zone_of(zone))
    except InvalidValue:
        moment, zone = datetime_of(begun_at, UTC), "UTC"
    # Not %A: the name of the day would depend on the locale.
    return f"[{_DAYS[moment.weekday()]}, {moment:%Y-%m-%d %H:%M} {zone}, UTC{moment:%z}]"


def place_lines(
    messages: Sequence[Message | NewMessage | Cover],
    lines: Mapping[TurnId, str],
    *,
    turn_id: TurnId | None,
) -> dict[int, str]:
    """Return the line of each turn by the index of the message it belongs to.

    That is the first message the turn answers, or else its first own message. ``len(messages)`` stands for the end:
    the running turn ``turn_id`` has no message yet. A message that is not stored belongs to the running turn.
    """
    placed: dict[int, str] = {}
    waiting = dict(lines)
    for number, each in enumerate(messages):
        # The results of calls that an earlier turn left open are no place: they come before the turn's first question.
        if isinstance(each, Cover) or each.role == "tool":
            continue
        owner = each.turn_id if isinstance(each, Message) else turn_id
        if owner is not None and owner in waiting:
            placed[number] = waiting.pop(owner)
    if turn_id is not None and turn_id in waiting:
        placed[len(messages)] = waiting[turn_id]
    return placed
