"""Condense a part of a conversation into one bounded text without a model: the input of a summary, or its text.

The text contains the oldest and the newest messages, long ones by their beginning and end, and the number of the
messages between. The same messages give the same text.
"""

from collections.abc import Iterable, Sequence
from json import dumps
from typing import Final

from keryx.core.context.rules.compaction import Item
from keryx.core.context.rules.cover import Cover
from keryx.core.context.rules.token_count import count_text
from keryx.core.conversations.rules.part import MediaPart, Part, TextPart, ToolCallPart, ToolResultPart
from keryx.core.values.json_value import as_text

LINE_MIN: Final = 24
GAP: Final = "(… {count} messages in between are left out here …)"
_GAP_TOKENS: Final = 16


def condense(items: Sequence[Item], *, tokens: int, line_length: int) -> str:
    """Return the items in at most about ``tokens``, each in at most ``line_length`` characters.

    An earlier summary covers many messages, so it may take half of the text. The text contains at least the count.
    """
    share = 2 if items and isinstance(items[0], Cover) else 4
    head = _lines(items, tokens=max(0, tokens - _GAP_TOKENS) // share, line_length=line_length)
    rest = items[len(head) :]
    left = tokens - _GAP_TOKENS - sum(map(count_text, head))
    tail = _lines(reversed(rest), tokens=left, line_length=line_length)
    missing = len(rest) - len(tail)
    gap = [GAP.format(count=missing)] if missing else []
    return "\n".join([*head, *gap, *reversed(tail)])


def _lines(items: Iterable[Item], *, tokens: int, line_length: int) -> list[str]:
    lines: list[str] = []
    for item in items:
        length = max(line_length, 2 * tokens) if isinstance(item, Cover) else line_length
        line = _line(item, length=min(length, 4 * tokens))
        tokens -= count_text(line)
        if tokens < 0:
            break
        lines.append(line)
    return lines


def _line(item: Item, *, length: int) -> str:
    if isinstance(item, Cover):
        head, text = f"[{item.first_seq} to {item.last_seq}] in short: ", item.summary
    else:
        who = f"{item.role} {dumps(item.author, ensure_ascii=False)}" if item.author else item.role
        head, text = f"[{item.seq}] {who}: ", " ".join(filter(None, map(_part_text, item.parts)))
    return head + _cut(text, max(LINE_MIN, length - len(head)))


def _part_text(part: Part) -> str:
    match part:
        case TextPart():
            return part.text
        case ToolCallPart():
            return f"(calls {part.name} with {as_text(part.arguments)})"
        case ToolResultPart():
            return f"({part.name} {'failed' if part.is_error else 'gave'}: {as_text(part.output)})"
        case MediaPart():
            return f"[{part.name or part.media_type}]"
        case _:
            return ""


def _cut(text: str, length: int) -> str:
    """Return the text, or the beginning and the end of a long text."""
    if len(text) <= length:
        return text
    end = length // 3
    return f"{text[: length - end - 3]} … {text[len(text) - end :]}"
