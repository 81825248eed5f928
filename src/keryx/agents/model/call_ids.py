"""Ids of tool calls that are unique in a conversation, whatever ids the provider gives."""

from collections.abc import Sequence
from dataclasses import replace

from keryx.agents.agent import HistoryItem
from keryx.core.context.rules.cover import Cover
from keryx.core.conversations.rules.message import NewMessage, Part, ToolCallPart


def with_unique_ids(answer: NewMessage, earlier: Sequence[HistoryItem | NewMessage]) -> NewMessage:
    """Return the answer with ids that no earlier call has: some providers count from one in every answer."""
    taken = {
        part.call_id
        for message in earlier
        if not isinstance(message, Cover)
        for part in message.parts
        if isinstance(part, ToolCallPart)
    }
    parts: list[Part] = []
    for part in answer.parts:
        if isinstance(part, ToolCallPart):
            unique, number = part.call_id or "call", 1
            while unique in taken:
                number += 1
                unique = f"{part.call_id or 'call'}_{number}"
            taken.add(unique)
            parts.append(replace(part, call_id=unique))
        else:
            parts.append(part)
    return replace(answer, parts=tuple(parts))
