"""How much was used, as amounts that add up, and how people are told of it."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Final

from keryx.domain.prices import LIST_DATE
from keryx.values import dataclass

SHOWN_MICROS: Final = 100
UNKNOWN_MODEL: Final = "an unknown model"
ESTIMATED: Final = (
    f"Costs are estimated, at your own prices or else at those of {LIST_DATE}; "
    "so are the tokens of what was interrupted."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """How much was used; cached tokens are among the input, thinking ones among the output tokens.

    Cost is in millionths of a dollar, and 0 where no price is known.
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
        """Whether a model was asked."""
        return bool(self.input_tokens or self.output_tokens)


_NAMES: Final = tuple(field.name for field in fields(Amount))


def total(amounts: Iterable[Amount]) -> Amount:
    """Return the sum of amounts."""
    sums = dict.fromkeys(_NAMES, 0)
    for amount in amounts:
        for name in _NAMES:
            sums[name] += getattr(amount, name)
    return Amount(**sums)


def tell_usage(title: str, models: Mapping[str | None, Amount]) -> list[str]:
    """Return lines that tell what was used, all together and then by model, if several were asked."""
    asked = {model: amount for model, amount in models.items() if amount.has_tokens}
    if not asked:
        return [f"{title}: no model was asked."]
    if len(asked) == 1:
        [(model, amount)] = asked.items()
        return [f"{title} ({model or UNKNOWN_MODEL}): {tell_amount(amount)}"]
    told = sorted(
        asked.items(), key=lambda item: (-item[1].cost_micros, -item[1].input_tokens, item[0] or "")
    )
    return [
        f"{title}: {tell_amount(total(asked.values()))}",
        *(f"- {model or UNKNOWN_MODEL}: {tell_amount(amount)}" for model, amount in told),
    ]


def tell_amount(amount: Amount) -> str:
    """Return an amount in words."""
    thinking = f" ({amount.thinking_tokens:,} thinking)" if amount.thinking_tokens else ""
    return (
        f"{amount.input_tokens:,} tokens in ({amount.cached_tokens:,} cached), "
        f"{amount.output_tokens:,} out{thinking}, {tell_cost(amount)}."
    )


def tell_cost(amount: Amount) -> str:
    """Return the estimated cost; where nothing is known of it, that."""
    if not amount.cost_micros:
        return "no price known"
    if amount.cost_micros < SHOWN_MICROS:
        return "less than $0.0001"
    return f"about ${amount.cost_micros / 1_000_000:.4f}"
