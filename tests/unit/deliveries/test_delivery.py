"""Deliveries: states, outcomes, and retry times."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.clock import DAY, HOUR, MINUTE, SECOND
from keryx.core.deliveries.rules.delivery import (
    ATTEMPTS_MAX,
    NextDelivery,
    Outcome,
    Rejected,
    Sent,
    Unknown,
    after_outcome,
    probe_at,
    retry_at,
)


def test_waits_double_up_to_a_quarter_of_an_hour() -> None:
    waits = [retry_at(attempt, now=100) - 100 for attempt in (1, 2, 3, 9, 10, 1000)]
    assert waits == [2 * SECOND, 4 * SECOND, 8 * SECOND, 512 * SECOND, 15 * MINUTE, 15 * MINUTE]


def test_jitter_lengthens_a_wait_by_up_to_a_quarter() -> None:
    assert retry_at(1, now=0, jitter=0.5) == 2 * SECOND + SECOND // 4
    assert retry_at(10, now=0, jitter=1.0) == 15 * MINUTE * 5 // 4


def test_the_platform_s_retry_time_overrides_the_back_off() -> None:
    assert retry_at(1, now=100, retry_after=HOUR, jitter=1.0) == 100 + HOUR
    assert retry_at(9, now=100, retry_after=SECOND) == 100 + SECOND
    assert retry_at(9, now=100, retry_after=-5) == 100


def test_a_dead_address_is_probed_at_growing_intervals() -> None:
    assert [probe_at(probes, now=0) for probes in (0, 1, 7, 8, 9999)] == [
        HOUR,
        2 * HOUR,
        128 * HOUR,
        7 * DAY,
        7 * DAY,
    ]


def after(outcome: Outcome, *, attempt: int = 1, deduplicates: bool = False) -> NextDelivery:
    return after_outcome(outcome, attempt=attempt, now=0, deduplicates=deduplicates)


def test_a_receipt_ends_a_delivery() -> None:
    assert after(Sent(message_id="m1")) == NextDelivery(state="sent", message_id="m1")


def test_a_rejection_is_retried_until_the_last_attempt() -> None:
    slow = Rejected(reason="slow down", retry_after=9 * SECOND)
    assert after(slow) == NextDelivery(state="ready", due_at=9 * SECOND, reason="slow down")
    assert after(slow, attempt=ATTEMPTS_MAX) == NextDelivery(
        state="dead", reason="given up after 10 attempts: slow down"
    )


def test_a_permanent_rejection_is_not_retried() -> None:
    assert after(Rejected(reason="too long", permanent=True)) == NextDelivery(
        state="rejected", reason="too long"
    )
    assert after(Rejected(reason="blocked", dead_address=True)) == NextDelivery(
        state="dead", reason="blocked", address_dead=True
    )


@pytest.mark.parametrize("deduplicates", [True, False])
def test_an_unknown_outcome_is_sent_again_and_marked_unless_the_platform_deduplicates(
    *, deduplicates: bool
) -> None:
    assert after(Unknown(), deduplicates=deduplicates) == NextDelivery(
        state="ready", due_at=2 * SECOND, maybe_repeated=not deduplicates, reason="no receipt came"
    )
    assert after(Unknown(), attempt=ATTEMPTS_MAX, deduplicates=deduplicates).state == "unknown"


@given(
    st.builds(Sent, message_id=st.none())
    | st.builds(Unknown)
    | st.builds(
        Rejected,
        reason=st.just("r"),
        retry_after=st.none() | st.integers(0, DAY),
        permanent=st.booleans(),
        dead_address=st.booleans(),
    ),
    st.integers(1, 20),
    st.booleans(),
)
@settings(max_examples=100)
def test_every_outcome_leads_to_a_legal_state_and_has_a_due_time_only_if_retried(
    outcome: Outcome, attempt: int, deduplicates: object
) -> None:
    then = after(outcome, attempt=attempt, deduplicates=bool(deduplicates))
    assert then.state in ("ready", "sent", "rejected", "unknown", "dead")
    assert (then.due_at is not None) == (then.state == "ready")
