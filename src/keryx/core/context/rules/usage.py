"""Amounts of usage that can be added up, and their text for people."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import fields
from typing import Final, TypeVar

from keryx.core.context.rules.prices import LIST_DATE
from keryx.values import dataclass

SHOWN_MICROS: Final = 100
UNKNOWN_MODEL: Final = "an unknown model"
ESTIMATED: Final = (
    f"Costs are estimated, at your own prices or else at those of {LIST_DATE}; "
    "so are the tokens of interrupted turns."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """An amount of usage; input tokens include cached tokens, output tokens include thinking tokens.

    The cost is in millionths of a dollar, and 0 if no price is known.
    """

    messages: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    cost_micros: int = 0

    @property
    def has_tokens(self) -> bool:
        """Whether a model was called."""
        return bool(self.input_tokens or self.output_tokens)


Of = TypeVar("Of", bound=Hashable)
_NAMES: Final = tuple(field.name for field in fields(Amount))


def total(amounts: Iterable[Amount]) -> Amount:
    """Return the sum of amounts."""
    sums = dict.fromkeys(_NAMES, 0)
    for amount in amounts:
        for name in _NAMES:
            sums[name] += getattr(amount, name)
    return Amount(**sums)


def total_by(used: Iterable[tuple[Of, Amount]]) -> dict[Of, Amount]:
    """Return the sum of the amounts of each model, day or session."""
    groups: dict[Of, list[Amount]] = {}
    for key, amount in used:
        groups.setdefault(key, []).append(amount)
    return {key: total(amounts) for key, amounts in groups.items()}


def format_usage(title: str, models: Mapping[str | None, Amount]) -> list[str]:
    """Return lines with the total usage, then the usage of each model if several were called."""
    asked = {model: amount for model, amount in models.items() if amount.has_tokens}
    if not asked:
        return [f"{title}: no model was called."]
    if len(asked) == 1:
        [(model, amount)] = asked.items()
        return [f"{title} ({model or UNKNOWN_MODEL}): {format_amount(amount)}"]
    by_cost = sorted(
        asked.items(), key=lambda item: (-item[1].cost_micros, -item[1].input_tokens, item[0] or "")
    )
    return [
        f"{title}: {format_amount(total(asked.values()))}",
        *(f"- {model or UNKNOWN_MODEL}: {format_amount(amount)}" for model, amount in by_cost),
    ]


def format_amount(amount: Amount) -> str:
    """Return an amount in words."""
    thinking = f" ({amount.thinking_tokens:,} thinking)" if amount.thinking_tokens else ""
    return (
        f"{amount.input_tokens:,} tokens in ({amount.cached_tokens:,} cached), "
        f"{amount.output_tokens:,} out{thinking}, {format_cost(amount)}."
    )


def format_cost(amount: Amount) -> str:
    """Return the estimated cost in words, or that no price is known."""
    if not amount.cost_micros:
        return "no price known"
    if amount.cost_micros < SHOWN_MICROS:
        return "less than $0.0001"
    return f"about ${amount.cost_micros / 1_000_000:.4f}"
