"""Single parts of our messages as parts of a provider's request. Pure."""

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from json import dumps
from typing import Any, Final

from pydantic_ai import messages as wire

from keryx.core.context.rules.call_pairs import NO_RESULT, CallPair, orphan_result_text
from keryx.core.conversations.rules.message import (
    MediaPart,
    Part,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from keryx.core.conversations.rules.part import IMAGES
from keryx.core.values.json_value import JsonValue

NO_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""Times are not sent; a constant keeps the conversion pure."""
UNREADABLE: Final = "[something this version cannot read]"
NOT_SHOWN: Final = {
    False: "[{what}: you cannot see this, because it is too large or not in the store]",
    True: "[{what}: you cannot see this, because it is no image, PDF or text]",
}
"""The note for an attachment that is not shown, by whether its content is available."""
FILES: Final = frozenset({"application/pdf"})

_SURROGATES: Final = re.compile("[\ud800-\udfff]")


def shown_content(part: Part, media: Mapping[str, bytes]) -> wire.UserContent | None:
    """Return the content of a part of a user message; None for a part that is not shown there."""
    match part:
        case TextPart():
            return clean_text(part.text)
        case MediaPart(url=str(url)) if url.startswith("data:"):
            return _data(part, url)
        case MediaPart(url=str(url)) if part.media_type.startswith("image/"):
            return wire.ImageUrl(url=url)
        case MediaPart(blob=str(blob)) if blob in media and part.media_type in IMAGES | FILES:
            return wire.BinaryContent(data=media[blob], media_type=part.media_type)
        case MediaPart(blob=str(blob)) if blob in media and part.media_type.startswith("text/"):
            return clean_text(f"{attachment_name(part)}\n{media[blob].decode('utf-8', 'replace')}")
        case MediaPart():
            return _not_shown(part, media)
        case ThinkingPart() | ToolCallPart() | ToolResultPart():
            return None
        case _:
            return UNREADABLE


def result_part(pair: CallPair, *, note: str | None = None) -> wire.ToolReturnPart:
    """Return the result of a call, and below it a note of Keryx."""
    result = pair.result
    output = NO_RESULT if result is None else _text(result.output)
    return wire.ToolReturnPart(
        tool_name=pair.call.name,
        content=output if note is None else f"{output}\n\n{note}",
        tool_call_id=pair.call_id,
        timestamp=NO_TIME,
        outcome="failed" if result is None or result.is_error else "success",
    )


def stray_result_part(result: ToolResultPart) -> wire.UserPromptPart:
    """Return a result whose call is not shown, for example because a summary stands for it."""
    return keryx_part(orphan_result_text(result, _text(result.output)))


def keryx_part(text: str) -> wire.UserPromptPart:
    """Return a text of Keryx itself."""
    return wire.UserPromptPart(clean_text(text), timestamp=NO_TIME)


def attachment_name(part: MediaPart) -> str:
    """Return a note that names an attachment."""
    return clean_text(
        f"[{part.name or part.media_type}]" if part.url is None else f"[{part.media_type}: {part.url}]"
    )


def call_arguments(arguments: JsonValue) -> str | dict[str, Any]:
    """Return the arguments of a call; a model may have written a text that is not an object."""
    return arguments if isinstance(arguments, dict) else _text(arguments)


def clean_text(text: str) -> str:
    """Return a text that UTF-8 can encode: half of a surrogate pair cannot be sent."""
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)


def _not_shown(part: MediaPart, media: Mapping[str, bytes]) -> str:
    if part.blob is None:
        return attachment_name(part)
    return clean_text(NOT_SHOWN[part.blob in media].format(what=part.name or part.media_type))


def _data(part: MediaPart, url: str) -> wire.UserContent:
    with suppress(ValueError):
        content = wire.BinaryContent.from_data_uri(url)
        if content.media_type in IMAGES | FILES:
            return content
    return attachment_name(MediaPart(media_type=part.media_type, url="data:…", name=part.name))


def _text(value: JsonValue) -> str:
    return clean_text(
        value if isinstance(value, str) else dumps(value, ensure_ascii=False, separators=(",", ":"))
    )
