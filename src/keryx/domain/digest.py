"""A part of a conversation as one text of bounded size, made without a model: what a summary is made from, or is.

The newest messages and the oldest are there, long ones by their beginning and end; what lies between is counted. The
same messages give the same text.
"""

from collections.abc import Iterable, Sequence
from json import dumps
from typing import Final

from keryx.domain.compaction import Item
from keryx.domain.cover import Cover
from keryx.domain.json_value import JsonValue
from keryx.domain.part import MediaPart, Part, TextPart, ToolCallPart, ToolResultPart
from keryx.domain.token_count import count_text

LINE_MIN: Final = 24
GAP: Final = "(… {count} messages in between are left out here …)"
_GAP_TOKENS: Final = 16


def digest(items: Sequence[Item], *, tokens: int, line_length: int) -> str:
    """Return the items in at most ``tokens``, about, each in at most ``line_length`` characters.

    An earlier summary, which stands for much, may take half of it all. There is always at least the count.
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
    """Return as many of the first items as fit."""
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
        head, text = f"[{item.seq}] {who}: ", " ".join(filter(None, map(_told, item.parts)))
    return head + _cut(text, max(LINE_MIN, length - len(head)))


def _told(part: Part) -> str:
    match part:
        case TextPart():
            return part.text
        case ToolCallPart():
            return f"(calls {part.name} with {_json(part.arguments)})"
        case ToolResultPart():
            return f"({part.name} {'failed' if part.is_error else 'gave'}: {_json(part.output)})"
        case MediaPart():
            return f"[{part.name or part.media_type}]"
        case _:
            return ""


def _json(value: JsonValue) -> str:
    return value if isinstance(value, str) else dumps(value, ensure_ascii=False, separators=(",", ":"))


def _cut(text: str, length: int) -> str:
    """Return the beginning and the end of a text that is too long."""
    if len(text) <= length:
        return text
    end = length // 3
    return f"{text[: length - end - 3]} … {text[len(text) - end :]}"
