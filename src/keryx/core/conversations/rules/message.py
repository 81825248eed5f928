"""Messages, and the lossless text in which their parts are stored.

``decode_parts(encode_parts(parts)) == parts`` for every value that can be constructed. ``decode_parts`` never
raises: a part that it cannot read becomes an ``UnknownPart``, and the other parts stay readable.
"""

import re
from collections.abc import Iterator
from json import JSONDecoder, JSONEncoder
from typing import Any, Final, Literal, NamedTuple, get_args

from keryx.clock import Micros
from keryx.core.conversations.rules.part import (
    MediaPart,
    Part,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    UnknownPart,
    check_count,
)
from keryx.core.media.rules import ReadKept, searched_output
from keryx.core.values.graphemes import cut, one_line
from keryx.core.values.json_value import JsonValue, leaves
from keryx.core.values.turn_states import TurnId
from keryx.errors import InvalidValue
from keryx.values import dataclass

__all__ = [
    "PREVIEW_LENGTH",
    "ROLES",
    "JsonValue",
    "MediaPart",
    "Message",
    "NewMessage",
    "Part",
    "Role",
    "TextPart",
    "ThinkingPart",
    "ToolCallPart",
    "ToolResultPart",
    "UnknownPart",
    "decode_parts",
    "encode_parts",
    "preview_of",
    "search_text",
    "stored_search_text",
    "stored_text",
    "text_message",
    "text_of",
    "tool_call_count",
    "usage_of",
]

Role = Literal["user", "assistant", "tool", "system"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)

PREVIEW_LENGTH: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """A message to append; the store assigns its place, and its time if ``created_at`` is None."""

    role: Role
    parts: tuple[Part, ...]
    author: str | None = None
    author_id: int | None = None
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    """Included in ``output_tokens``."""
    cost_micros: int = 0
    finish_reason: str | None = None
    created_at: Micros | None = None

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise InvalidValue(f"role {self.role!r} of a message is not one of {', '.join(ROLES)}")
        if not isinstance(self.parts, tuple):
            raise InvalidValue("parts of a message must be a tuple of parts")
        usage = usage_of(self)
        if any(usage.values()):
            check_count("message", **usage)


def usage_of(message: NewMessage) -> dict[str, int]:
    """Return the usage of the model that wrote the message, by column."""
    return {
        "input_tokens": message.input_tokens,
        "cached_tokens": message.cached_tokens,
        "output_tokens": message.output_tokens,
        "thinking_tokens": message.thinking_tokens,
        "cost_micros": message.cost_micros,
    }


class Message(NamedTuple):
    """A stored message. ``seq`` rises along every branch and defines the order.

    A named tuple, which decodes its parts on access: a long transcript holds thousands of
    messages.
    """

    id: int
    session_id: str
    branch_no: int
    seq: int
    role: Role
    body: str
    author: str | None
    author_id: int | None
    turn_id: TurnId | None
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    thinking_tokens: int
    cost_micros: int
    finish_reason: str | None
    created_at: Micros

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts; a damaged or unknown part is an ``UnknownPart``."""
        return decode_parts(self.body)

    @property
    def text(self) -> str:
        """The text parts, without tool calls, results, media and thinking."""
        return stored_text(self.body)

    @property
    def tool_calls(self) -> tuple[ToolCallPart, ...]:
        """The tool calls in this message, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCallPart))


def text_message(role: Role, text: str) -> NewMessage:
    """Return a message whose only part is ``text``."""
    return NewMessage(role=role, parts=(TextPart(text=text),))


def encode_parts(parts: tuple[Part, ...]) -> str:
    """Return the stored text of ``parts``: JSON without NUL and surrogates, which every database accepts.

    A single text part is a JSON string. Otherwise the text is a list: text parts are strings, other parts are objects.
    """
    if len(parts) == 1 and type(parts[0]) is TextPart:
        encoded = _to_json(parts[0].text)
    else:
        encoded = _to_json([_encode_part(part) for part in parts])
    if encoded.isascii():
        return encoded
    try:
        encoded.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub(_escape_surrogate, encoded)
    return encoded


def _read(encoded: str) -> JsonValue:
    """Return the JSON value of a stored text; None for damaged JSON, because no message is stored as null."""
    if encoded.startswith('"') and "\\" not in encoded and encoded.find('"', 1) == len(encoded) - 1:
        # Nothing is escaped, so the text needs no parser. This is the case for most of a transcript.
        return encoded[1:-1]
    # Unescape before parsing, because the parser would join two escaped surrogates into one character.
    readable = _ESCAPE.sub(_unescape_surrogate, encoded) if "\\ud" in encoded else encoded
    try:
        value, end = _from_json(readable)
    except (ValueError, RecursionError):
        return None
    return value if end == len(readable) else None


def stored_text(encoded: str) -> str:
    """Return ``text_of`` the stored parts without decoding them: stored text parts are plain strings."""
    value = _read(encoded)
    if isinstance(value, str):
        return value
    return "\n".join([item for item in value if isinstance(item, str)]) if isinstance(value, list) else ""


def decode_parts(encoded: str) -> tuple[Part, ...]:
    """Return the parts of a stored text; a damaged text becomes one ``UnknownPart`` that holds it."""
    value = _read(encoded)
    if isinstance(value, str):
        return (TextPart(text=value),)
    if isinstance(value, list):
        return tuple([_decode_part(item, encoded) for item in value])
    return (UnknownPart(raw={"torn": encoded}),)


_SURROGATE: Final = re.compile("[\ud800-\udfff]")
# Matches a surrogate's escape, or any other escape, which is skipped so that "\\\\ud800" stays as it is.
_ESCAPE: Final = re.compile(r"\\(?:u(d[89a-f][0-9a-f]{2})|.)", re.DOTALL)

# Do not escape readable text (CJK would double in size); the encoder escapes NUL and other control characters.
_to_json: Final = JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
# Unescaped control characters are accepted, as on the path without a parser.
_from_json: Final = JSONDecoder(strict=False).raw_decode


def _escape_surrogate(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _unescape_surrogate(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else match[0]


def _encode_part(part: Part) -> JsonValue:
    match part:
        case TextPart():
            return part.text
        case ThinkingPart():
            return _object("think", text=part.text, signature=part.signature)
        case ToolCallPart():
            call = _object("call", id=part.call_id, name=part.name, effect=part.effect)
            return call | {"args": part.arguments}
        case ToolResultPart():
            result = _object("result", id=part.call_id, name=part.name, error=part.is_error or None)
            return result | {"out": part.output}
        case MediaPart():
            return _object(
                "media",
                type=part.media_type,
                blob=part.blob,
                url=part.url,
                name=part.name,
                size=part.size_bytes,
                detail=part.detail,
            )
        case _:
            # Store the raw value; wrap it only if it would be decoded as another part.
            return part.raw if _decode_part(part.raw, "") == part else {"t": "unknown", "raw": part.raw}


def _object(kind: str, **fields: str | int | None) -> dict[str, JsonValue]:
    item: dict[str, JsonValue] = {"t": kind}
    item.update((name, value) for name, value in fields.items() if value is not None)
    return item


def _decode_part(item: JsonValue, encoded: str) -> Part:
    """Return the part of ``item``; if no part can hold the item, return an ``UnknownPart`` with the whole text."""
    if isinstance(item, str):
        return TextPart(text=item)
    raw: dict[str, JsonValue] = item if isinstance(item, dict) else {"value": item}
    try:
        return _decode_object(raw)
    except (KeyError, InvalidValue):
        pass
    try:
        return UnknownPart(raw=raw)
    except InvalidValue:
        # Nested too deep, or a number out of range: not written by our encoder.
        return UnknownPart(raw={"torn": encoded})


def _decode_object(item: dict[str, Any]) -> Part:
    # The parts' constructors refuse wrong values.
    get = item.get
    match get("t"):
        case "call":
            return ToolCallPart(
                call_id=item["id"], name=item["name"], arguments=item["args"], effect=get("effect")
            )
        case "result":
            return ToolResultPart(
                call_id=item["id"], name=item["name"], output=item["out"], is_error=get("error", False)
            )
        case "think":
            return ThinkingPart(text=item["text"], signature=get("signature"))
        case "media":
            return MediaPart(
                media_type=item["type"],
                blob=get("blob"),
                url=get("url"),
                name=get("name"),
                size_bytes=get("size"),
                detail=get("detail"),
            )
        case "unknown":
            return UnknownPart(raw=item["raw"])
        case _:
            return UnknownPart(raw=item)


def text_of(parts: tuple[Part, ...]) -> str:
    """Return the text parts, joined by line breaks."""
    if len(parts) == 1 and type(parts[0]) is TextPart:
        return parts[0].text
    return "\n".join([part.text for part in parts if isinstance(part, TextPart)])


def search_text(parts: tuple[Part, ...], read_kept: ReadKept) -> str:
    """Return the searchable text: text, tool names, arguments, results and media names, but not thinking.

    ``read_kept`` returns the stored text of a long result. Index and scan must use the same function.
    """
    if len(parts) == 1 and type(parts[0]) is TextPart:
        return parts[0].text
    return "\n".join([piece for part in parts for piece in _searchable(part, read_kept)])


def stored_search_text(encoded: str, read_kept: ReadKept) -> str:
    """Return ``search_text`` of the stored parts; a single text part is not decoded."""
    value = _read(encoded) if encoded.startswith('"') else None
    return value if isinstance(value, str) else search_text(decode_parts(encoded), read_kept)


def preview_of(parts: tuple[Part, ...], limit: int = PREVIEW_LENGTH) -> str:
    """Return a preview of the message for people: one line of at most ``limit`` characters."""
    pieces = [piece for part in parts if (piece := one_line(_shown(part), limit))]
    return cut(" ".join(pieces), limit)


def tool_call_count(parts: tuple[Part, ...]) -> int:
    """Return the number of tool calls in the message."""
    if len(parts) == 1 and type(parts[0]) is TextPart:
        return 0
    return sum([isinstance(part, ToolCallPart) for part in parts])


def _searchable(part: Part, read_kept: ReadKept) -> Iterator[str]:
    match part:
        case TextPart():
            yield part.text
        case ToolCallPart():
            yield part.name
            yield from leaves(part.arguments)
        case ToolResultPart():
            yield part.name
            yield from leaves(searched_output(part.output, read_kept))
        case MediaPart(name=str(name)):
            yield name
        case UnknownPart():
            yield from leaves(part.raw)
        case _:
            return


def _shown(part: Part) -> str:
    """Return the text of one part in a preview."""
    match part:
        case TextPart():
            return part.text
        case ToolCallPart():
            return f"[{part.name}]"
        case ToolResultPart(output=str(output)):
            return output
        case ToolResultPart():
            return f"[result of {part.name}]"
        case MediaPart():
            return f"[{part.name or part.media_type}]"
        case _:
            return ""
