"""A provider's finished answer as a message with its tokens and its cost, or a failure. Pure.

``answer_parts`` then ``provider_messages`` is the identity on everything that a provider reads.
"""

from collections.abc import Iterator
from json import loads
from typing import Any, Final, cast

from pydantic_ai import messages as wire
from pydantic_ai.usage import RequestUsage

from keryx.agents.model.contract import CallFailed
from keryx.agents.model.providers import failures
from keryx.agents.model.providers.signatures import json_fields, pack_signature
from keryx.core.context.rules.prices import Price, cost_of
from keryx.core.conversations.rules.message import (
    NewMessage,
    Part,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from keryx.core.values.json_value import JsonValue, check_json

WITHOUT_FINISH_REASON: Final = frozenset({"snowflake", "xai"})
"""The providers that never give a reason of their own why an answer ended."""
COST_MICROS: Final = 1_000_000
THINKING_DETAILS: Final = ("reasoning_tokens", "thinking_tokens", "thoughts_tokens")


def answer_message(
    response: wire.ModelResponse, model: str, *, heard: bool, price: Price | None
) -> NewMessage:
    """Return the answer; raise ``CallFailed`` if it is empty, cut off or refused."""
    parts = answer_parts(response)
    provider = model.partition(":")[0]
    is_empty = all(isinstance(part, ThinkingPart) for part in parts)
    if response.finish_reason == "content_filter" and is_empty:
        raise CallFailed(failures.FILTERED.format(provider=provider), heard=heard)
    if not _is_whole(response, provider):
        raise CallFailed(failures.UNFINISHED.format(model=model), may_pass=True, heard=heard)
    if is_empty:
        raise CallFailed(failures.EMPTY.format(model=model), may_pass=True, heard=heard)
    usage = response.usage
    return NewMessage(
        role="assistant",
        parts=parts,
        input_tokens=usage.input_tokens,
        cached_tokens=usage.cache_read_tokens,
        output_tokens=usage.output_tokens,
        thinking_tokens=_thinking_tokens(usage),
        cost_micros=_cost(response, price),
        finish_reason=response.finish_reason,
    )


def _is_whole(response: wire.ModelResponse, provider: str) -> bool:
    """Return whether the model finished its answer, and not only the connection ended.

    pydantic-ai reads a stream of OpenAI's kind that ends without a reason, as a relay may cut it, as "stop". Only the
    provider's own reason beside it tells the two apart.
    """
    if response.finish_reason is None or response.state != "complete":
        return False
    has_reason = "finish_reason" in (response.provider_details or {})
    return has_reason or response.finish_reason != "stop" or provider in WITHOUT_FINISH_REASON


def _thinking_tokens(usage: RequestUsage) -> int:
    """Return the number of thinking tokens, under whichever name the package reports them."""
    named = (usage.details.get(name, 0) for name in THINKING_DETAILS)
    return max(usage.output_reasoning_tokens, *named)


def _cost(response: wire.ModelResponse, price: Price | None) -> int:
    """Return the cost by the owner's price, else by the packages' list of prices; 0 if neither knows the model."""
    if price is not None:
        usage = response.usage
        return cost_of(
            price,
            input_tokens=usage.input_tokens,
            cached_tokens=usage.cache_read_tokens,
            output_tokens=usage.output_tokens,
        )
    try:
        return round(response.cost().total_price * COST_MICROS)
    except (LookupError, ValueError, AssertionError):
        return 0


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
