"""Estimate how many tokens a text takes, for planning without a provider's count.

Four ASCII characters are one token, as are three bytes of other text: a Chinese, Japanese or Korean character is one
token, a Greek or Cyrillic letter two thirds. Tokenizers differ by a third either way, so callers correct the
estimate by the provider's last count.
"""

from collections.abc import Sequence
from json import dumps
from typing import Final, TypeAlias

from keryx.core.context.rules.cover import Cover
from keryx.core.conversations.rules.message import Message, NewMessage
from keryx.core.conversations.rules.part import (
    MediaPart,
    Part,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)

Counted: TypeAlias = Message | NewMessage | Cover

AROUND_MESSAGE: Final = 4
"""The tokens of a message besides its parts: role and delimiters."""
AROUND_COVER: Final = 20
"""The same for a summary, which also names its range."""
IMAGE_TOKENS: Final = 1_000
FILE_TOKENS_MIN: Final = 1_500
FILE_BYTES_PER_TOKEN: Final = 40
"""For a PDF file, whose pages are read as text and as pictures."""
NAME_TOKENS: Final = 12
"""For an attachment that is only named."""

_HIGH: Final = bytes(range(128, 256))


def count_text(text: str) -> int:
    """Return about how many tokens a text takes; a longer text never takes fewer."""
    encoded = text.encode("utf-8", "surrogatepass")
    plain = len(encoded) if text.isascii() else len(encoded.translate(None, _HIGH))
    return -(-(3 * plain + 4 * (len(encoded) - plain)) // 12)


def count_json(value: object) -> int:
    """Return about how many tokens a JSON value takes, or a mapping of such values."""
    return count_text(dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict))


def count_item(said: Counted) -> int:
    """Return about how many tokens a message or a summary takes, attachments included."""
    if isinstance(said, Cover):
        return AROUND_COVER + count_text(said.summary)
    if isinstance(said, Message) and said.body.startswith('"'):
        # A single text part is counted as stored, without decoding. This is most of a long transcript.
        return AROUND_MESSAGE + count_text(said.body)
    return AROUND_MESSAGE + sum(map(_count_part, said.parts))


def count_attachments(spoken: Sequence[Counted]) -> int:
    """Return about how many tokens the images and files take."""
    return sum(
        _count_media(part)
        for said in spoken
        if not isinstance(said, Cover) and not (isinstance(said, Message) and said.body.startswith('"'))
        for part in said.parts
        if isinstance(part, MediaPart)
    )


def _count_part(part: Part) -> int:
    match part:
        case TextPart() | ThinkingPart():
            return count_text(part.text)
        case ToolCallPart():
            return AROUND_MESSAGE + count_text(part.name) + count_json(part.arguments)
        case ToolResultPart():
            output = part.output
            size = count_text(output) if isinstance(output, str) else count_json(output)
            return AROUND_MESSAGE + count_text(part.name) + size
        case MediaPart():
            return _count_media(part)
        case _:
            return NAME_TOKENS


def _count_media(part: MediaPart) -> int:
    size = part.size_bytes or 0
    if part.media_type.startswith("image/"):
        return IMAGE_TOKENS
    if part.media_type == "application/pdf":
        return max(FILE_TOKENS_MIN, size // FILE_BYTES_PER_TOKEN)
    return NAME_TOKENS + (size // 4 if part.media_type.startswith("text/") else 0)
