"""Prices: the owner's own, and the price list with its date."""

from importlib.metadata import version

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keryx.core.context.rules.prices import LIST_NAME, PRICE_MAX, Price, cost_of, parse_price
from keryx.errors import InvalidValue

AMOUNTS = st.integers(0, PRICE_MAX * 1_000_000)
TOKENS = st.integers(0, 10**9)


def test_a_price_is_given_in_dollars_a_million_tokens() -> None:
    assert parse_price(("1.25", "0.125", "10")) == Price(input=1_250_000, cached=125_000, output=10_000_000)
    assert parse_price(("3", "15")) == Price(input=3_000_000, cached=3_000_000, output=15_000_000)


@given(AMOUNTS, AMOUNTS, AMOUNTS)
def test_a_price_is_shown_as_it_is_written(first: int, second: int, third: int) -> None:
    price = Price(input=first, cached=second, output=third)
    assert parse_price(tuple(str(price).split(", "))) == price


@pytest.mark.parametrize(
    "wrong", [(), ("1",), ("1", "2", "3", "4"), ("1", "-2"), ("1", "x"), ("1", "2.1234567")]
)
def test_an_invalid_price_is_refused_with_an_example(wrong: tuple[str, ...]) -> None:
    with pytest.raises(InvalidValue, match=r"such as 1\.25, 0\.125, 10"):
        parse_price(wrong)


def test_a_price_has_bounds() -> None:
    with pytest.raises(InvalidValue, match="a price is from 0"):
        parse_price(("9999999", "1"))


def test_cached_tokens_are_part_of_the_input_and_have_their_own_price() -> None:
    price = parse_price(("2", "0.5", "8"))
    cost = cost_of(price, input_tokens=1_000_000, cached_tokens=400_000, output_tokens=250_000)
    assert cost == 1_200_000 + 200_000 + 2_000_000
    assert cost_of(price, input_tokens=1, cached_tokens=0, output_tokens=0) == 2


@given(st.builds(Price, input=AMOUNTS, cached=AMOUNTS, output=AMOUNTS), TOKENS, TOKENS, TOKENS)
def test_a_cost_is_never_negative(price: Price, tokens_in: int, cached: int, out: int) -> None:
    assert cost_of(price, input_tokens=tokens_in, cached_tokens=cached, output_tokens=out) >= 0


def test_the_name_and_date_match_the_installed_price_list() -> None:
    name, _, number = LIST_NAME.partition(" ")
    assert version(name) == number, "another price list is installed: update LIST_NAME and LIST_DATE"
