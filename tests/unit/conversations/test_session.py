"""Session ids, close reasons, and the listing, bin and prune rules at their boundaries."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.clock import DAY, SECOND
from keryx.core.conversations.rules.session import (
    days_before,
    parse_close_reason,
    parse_session_id,
)
from keryx.errors import InvalidValue
from keryx.ids import Ids

NOW = 1_800_000_000 * SECOND


@settings(max_examples=100)
@given(st.integers(0, 4_000_000_000 * SECOND), st.integers())
def test_every_generated_id_is_a_session_id(now: int, seed: int) -> None:
    made = Ids(seed).session_id(now)
    assert parse_session_id(made) == made


@pytest.mark.parametrize(
    "text",
    [
        "",
        "20240229_120000_0123456",
        "20240229_120000_0123456G",
        "20240229_120000_0123ABCD",
        "20240229_120000_01234567\n",
        "../20240229_120000_01234567",
        "٢٠٢٤0229_120000_01234567",
        "20230229_120000_01234567",
        "20241301_120000_01234567",
        "20240229_240000_01234567",
        "20240229_120060_01234567",
        "00000101_120000_01234567",
    ],
)
def test_an_invalid_session_id_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="session id"):
        parse_session_id(text)


def test_known_close_reasons_and_a_programs_own_word_are_accepted() -> None:
    assert parse_close_reason("reset") == "reset"
    assert parse_close_reason("budget-used_2") == "budget-used_2"


@pytest.mark.parametrize("text", ["", "Done", "two words", "9lives", "x" * 33, "done\n"])
def test_a_close_reason_that_is_not_a_slug_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="close reason"):
        parse_close_reason(text)


def test_days_are_counted_back_from_now() -> None:
    assert days_before(NOW, 30) == NOW - 30 * DAY
    assert days_before(NOW, 0) == NOW


def test_a_negative_number_of_days_is_refused() -> None:
    with pytest.raises(InvalidValue, match="-1 days"):
        days_before(NOW, -1)
