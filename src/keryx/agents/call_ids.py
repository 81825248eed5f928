"""Ids of tool calls that are unique in a conversation, whatever ids a provider or program gives."""

from collections.abc import Iterable

from keryx.agents.agent import HistoryItem
from keryx.core.context.rules.cover import Cover
from keryx.core.conversations.rules.message import NewMessage, ToolCallPart


def call_ids(messages: Iterable[HistoryItem | NewMessage]) -> set[str]:
    """Return the ids of the calls in messages."""
    parts = (part for each in messages if not isinstance(each, Cover) for part in each.parts)
    return {part.call_id for part in parts if isinstance(part, ToolCallPart)}


def take_call_id(wanted: str, taken: set[str]) -> str:
    """Return an id that is not taken yet, the wanted one if possible, and add it to those taken."""
    unique, number = wanted or "call", 1
    while unique in taken:
        number += 1
        unique = f"{wanted or 'call'}_{number}"
    taken.add(unique)
    return unique
