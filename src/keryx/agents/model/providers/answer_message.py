"""A provider's finished answer as a message with its tokens and its cost, or a failure. Pure."""

from typing import Final

from pydantic_ai import messages as wire
from pydantic_ai.usage import RequestUsage

from keryx.agents.model.contract import CallFailed
from keryx.agents.model.providers import failures
from keryx.agents.model.providers.read_response import answer_parts
from keryx.core.context.rules.prices import Price, cost_of
from keryx.core.conversations.rules.message import NewMessage, ThinkingPart

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
    if response.finish_reason == "content_filter" and all(isinstance(part, ThinkingPart) for part in parts):
        raise CallFailed(failures.FILTERED.format(provider=provider), heard=heard)
    if not _is_whole(response, provider):
        raise CallFailed(failures.UNFINISHED.format(model=model), may_pass=True, heard=heard)
    if all(isinstance(part, ThinkingPart) for part in parts):
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
