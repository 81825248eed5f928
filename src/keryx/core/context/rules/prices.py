"""The prices of tokens: the owner's own prices, and the name and date of the list used without them.

A model without a price has no cost, rather than a wrong one. Every shown cost is an estimate: a provider's bill
also includes discounts, batches and minimums.
"""

import re
from datetime import date
from decimal import Decimal
from typing import Final

from keryx.errors import InvalidValue
from keryx.values import dataclass

LIST_NAME: Final = "genai-prices 0.2.1"
"""The price list of the packages that call providers; a test compares it with the installed one."""
LIST_DATE: Final = date(2026, 10, 30)
"""When that version was published."""

PRICE_MAX: Final = 1_000_000
_MILLION: Final = 1_000_000
_AMOUNT: Final = re.compile(r"[0-9]{1,7}(\.[0-9]{1,6})?")
_PRICES: Final = (2, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of a million tokens, in millionths of a dollar; thinking is output."""

    input: int
    cached: int
    output: int

    def __post_init__(self) -> None:
        if not all(0 <= price <= PRICE_MAX * _MILLION for price in (self.input, self.cached, self.output)):
            raise InvalidValue(f"a price is from 0 to {PRICE_MAX:,} dollars a million tokens")

    def __str__(self) -> str:
        """Return the price as the settings spell it: ``input, cached, output`` in dollars."""
        return ", ".join(f"{Decimal(price) / _MILLION:f}" for price in (self.input, self.cached, self.output))


def parse_price(amounts: tuple[str, ...]) -> Price:
    """Return a price in dollars a million tokens: input, output, or input, cached input, output."""
    if len(amounts) not in _PRICES or not all(_AMOUNT.fullmatch(amount) for amount in amounts):
        raise InvalidValue(
            "write what a million tokens cost in dollars: input, output; or input, cached input, output; "
            "such as 1.25, 0.125, 10"
        )
    given = [int(Decimal(amount) * _MILLION) for amount in amounts]
    return Price(input=given[0], cached=given[-2], output=given[-1])


def cost_of(price: Price, *, input_tokens: int, cached_tokens: int, output_tokens: int) -> int:
    """Return the cost of a call in millionths of a dollar; cached tokens are included in the input tokens."""
    cached = min(cached_tokens, input_tokens)
    micros = (input_tokens - cached) * price.input + cached * price.cached + output_tokens * price.output
    return (micros + _MILLION // 2) // _MILLION
