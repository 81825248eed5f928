"""Amounts of usage add up and have a text."""

from keryx.core.context.rules.usage import Amount, format_usage, total

SMALL = Amount(messages=1, input_tokens=10, cached_tokens=4, output_tokens=3, cost_micros=200)
THINKING = Amount(messages=2, tool_calls=1, input_tokens=1_000, output_tokens=50, thinking_tokens=40)


def test_amounts_add_up() -> None:
    assert total([]) == Amount()
    assert total([SMALL, THINKING]) == Amount(
        messages=3,
        tool_calls=1,
        input_tokens=1_010,
        cached_tokens=4,
        output_tokens=53,
        thinking_tokens=40,
        cost_micros=200,
    )


def test_one_model_takes_one_line() -> None:
    assert format_usage("Today", {"openai:small": SMALL, None: Amount(messages=7)}) == [
        "Today (openai:small): 10 tokens in (4 cached), 3 out, about $0.0002."
    ]


def test_several_models_are_listed_with_their_total_most_expensive_first() -> None:
    assert format_usage("Today", {None: THINKING, "openai:small": SMALL}) == [
        "Today: 1,010 tokens in (4 cached), 53 out (40 thinking), about $0.0002.",
        "- openai:small: 10 tokens in (4 cached), 3 out, about $0.0002.",
        "- an unknown model: 1,000 tokens in (0 cached), 50 out (40 thinking), no price known.",
    ]


def test_a_cost_that_rounds_to_0_is_not_shown_as_0() -> None:
    assert format_usage("Today", {"m": Amount(input_tokens=1, cost_micros=99)}) == [
        "Today (m): 1 tokens in (0 cached), 0 out, less than $0.0001."
    ]


def test_usage_without_a_model_says_so() -> None:
    assert format_usage("Today", {None: Amount(messages=3)}) == ["Today: no model was called."]
