"""Session ids, close reasons, and the listing, bin and prune rules at their boundaries."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.clock import DAY, SECOND
from keryx.domain.session import (
    CLOSE_REASONS,
    listed,
    parse_close_reason,
    parse_session_id,
    prune_due,
    purge_due,
    state_of,
)
from keryx.errors import InvalidValue
from keryx.ids import Ids

NOW = 1_800_000_000 * SECOND


@settings(max_examples=100)
@given(st.integers(0, 4_000_000_000 * SECOND), st.integers())
def test_every_id_we_make_is_a_session_id(now: int, seed: int) -> None:
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
def test_what_is_no_session_id_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="session id"):
        parse_session_id(text)


def test_our_close_reasons_and_a_programs_own_word_are_accepted() -> None:
    assert {parse_close_reason(word) for word in CLOSE_REASONS} == CLOSE_REASONS
    assert parse_close_reason("budget-used_2") == "budget-used_2"


@pytest.mark.parametrize("text", ["", "Done", "two words", "9lives", "x" * 33, "done\n"])
def test_a_close_reason_that_is_no_short_word_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="close reason"):
        parse_close_reason(text)


def test_a_session_is_closed_while_it_has_a_time_of_closing() -> None:
    assert state_of(None) == "open"
    assert state_of(0) == "closed"


@pytest.mark.parametrize(
    ("title", "messages", "age_seconds", "shown"),
    [
        (None, 0, 60, True),
        (None, 0, 61, False),
        ("", 0, 61, False),
        (" \n", 0, 61, False),
        ("Rome", 0, 61, True),
        (None, 1, 61, True),
    ],
)
def test_an_empty_untitled_session_is_hidden_after_a_minute(
    title: str | None, messages: int, age_seconds: int, *, shown: bool
) -> None:
    assert (
        listed(title=title, message_total=messages, started_at=NOW - age_seconds * SECOND, now=NOW) is shown
    )


def test_a_deleted_session_stays_in_the_bin_for_thirty_days() -> None:
    assert not purge_due(deleted_at=None, now=NOW)
    assert not purge_due(deleted_at=NOW - 30 * DAY + 1, now=NOW)
    assert purge_due(deleted_at=NOW - 30 * DAY, now=NOW)
    assert purge_due(deleted_at=NOW, now=NOW, days=0)


def test_prune_takes_only_closed_unpinned_sessions_inactive_for_longer_than_its_days() -> None:
    old = NOW - 90 * DAY - 1
    assert prune_due(closed_at=NOW, pinned_at=None, last_active_at=old, now=NOW)
    assert not prune_due(closed_at=NOW, pinned_at=None, last_active_at=old + 1, now=NOW)
    assert not prune_due(closed_at=None, pinned_at=None, last_active_at=old, now=NOW)
    assert not prune_due(closed_at=NOW, pinned_at=NOW, last_active_at=old, now=NOW)
    assert prune_due(closed_at=NOW, pinned_at=None, last_active_at=NOW - 7 * DAY - 1, now=NOW, days=7)


def test_a_negative_number_of_days_is_refused() -> None:
    with pytest.raises(InvalidValue, match="-1 days"):
        prune_due(closed_at=NOW, pinned_at=None, last_active_at=NOW, now=NOW, days=-1)
