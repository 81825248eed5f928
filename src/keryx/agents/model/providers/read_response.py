"""A provider's answer as parts of our messages. Pure.

``answer_parts`` then ``provider_messages`` is the identity on everything that a provider reads.
"""

from collections.abc import Iterator
from json import loads
from typing import Any, cast

from pydantic_ai import messages as wire

from keryx.agents.model.providers.signatures import json_fields, pack_signature
from keryx.core.conversations.rules.message import Part, TextPart, ThinkingPart, ToolCallPart
from keryx.core.values.json_value import JsonValue, check_json


def answer_parts(response: wire.ModelResponse) -> tuple[Part, ...]:
    """Return the text, thinking and calls of an answer, with the data that its provider wants back."""
    return tuple(part for each in response.parts for part in _parts(each))


def _parts(part: wire.ModelResponsePart) -> Iterator[Part]:
    match part:
        case wire.TextPart():
            yield from _signature_of_next(part)
            if part.content:
                yield TextPart(text=part.content)
        case wire.ThinkingPart():
            if part.content or part.signature:
                fields = {"id": part.id, "sig": part.signature, "details": part.provider_details}
                yield ThinkingPart(text=part.content, signature=pack_signature(part.provider_name, fields))
        case wire.ToolCallPart():
            yield from _signature_of_next(part)
            yield ToolCallPart(
                call_id=part.tool_call_id,
                name=part.tool_name,
                arguments=_arguments(cast("str | dict[str, Any] | None", part.args)),
            )
        case _:
            return  # files, and tools of the provider's own, which were not asked for


def _signature_of_next(part: wire.TextPart | wire.ToolCallPart) -> Iterator[Part]:
    """Yield an empty thinking part with the data that belongs to the part after it, if there is any."""
    fields = json_fields({"id": part.id, "details": part.provider_details})
    has_content = isinstance(part, wire.ToolCallPart) or part.content
    if fields and part.provider_name and has_content:
        yield ThinkingPart(text="", signature=pack_signature(part.provider_name, {"next": fields}))


def _arguments(arguments: str | dict[str, Any] | None) -> JsonValue:
    """Return the arguments of a call as an object, or the model's own text if it is not one."""
    if not arguments:
        return {}
    try:
        value = loads(arguments) if isinstance(arguments, str) else arguments
        check_json(value, where="arguments")
    except (ValueError, RecursionError):
        return arguments if isinstance(arguments, str) else str(arguments)
    return cast(JsonValue, value) if isinstance(value, dict) else cast(str, arguments)
