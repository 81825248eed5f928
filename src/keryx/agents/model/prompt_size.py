"""The size of a prompt in tokens: our estimate, corrected by the provider's last count. Pure."""

from collections.abc import Sequence
from typing import Final

from keryx.agents.agent import HistoryItem
from keryx.agents.model.contract import ModelPrompt
from keryx.core.context.rules.cover import Cover
from keryx.core.context.rules.token_count import count_item, count_json, count_text
from keryx.core.conversations.rules.message import NewMessage
from keryx.values import dataclass

TRUSTED: Final = 0.6
"""A provider's count below this share of our estimate is not believed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSize:
    """The tokens of a prompt."""

    system: int
    tools: int
    estimate: int
    """The whole prompt by our estimate."""
    total: int
    """The whole prompt by the provider's last count, or by our estimate if there is none."""

    @property
    def scale(self) -> float:
        """How many of the provider's tokens one of ours is."""
        return self.total / self.estimate


def measure_prompt(prompt: ModelPrompt) -> PromptSize:
    """Return the size of a prompt."""
    system = count_text(prompt.instructions) + count_text(prompt.context)
    tools = sum(
        count_text(offer.name) + count_text(offer.description) + count_json(offer.parameters)
        for offer in prompt.tools
    )
    times = sum(map(count_text, prompt.time_lines.values()))
    sizes = [count_item(message) for message in prompt.messages]
    estimate = max(1, system + tools + times + sum(sizes))
    counted = _provider_count(prompt.messages, sizes)
    trusted = counted if counted is not None and counted >= TRUSTED * estimate else estimate
    return PromptSize(system=system, tools=tools, estimate=estimate, total=trusted)


def _provider_count(messages: Sequence[HistoryItem | NewMessage], sizes: Sequence[int]) -> int | None:
    """Return the provider's last count plus our estimate of the messages since; None if there is no such count.

    A count from before the last summary does not fit the conversation any more.
    """
    covered_at = max((each.created_at for each in messages if isinstance(each, Cover)), default=None)
    since = 0
    for message, size in zip(reversed(messages), reversed(sizes), strict=True):
        if isinstance(message, Cover):
            return None
        if message.role == "assistant" and message.input_tokens:
            created_at = message.created_at
            is_old = covered_at is not None and created_at is not None and created_at <= covered_at
            return None if is_old else message.input_tokens + message.output_tokens + since
        since += size
    return None
