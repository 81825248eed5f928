"""The reset rule: exact boundaries, clock changes, choice of the policy, flush and notices."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keryx.clock import DAY, HOUR, MINUTE
from keryx.core.conversations.rules.source import LOCAL_CLI, Source
from keryx.core.turns.rules.reset import (
    Place,
    ResetPolicies,
    ResetPolicy,
    any_flush_due,
    expires_at,
    flush_due,
    flush_window,
    reset_due,
    reset_notice,
)
from keryx.errors import InvalidValue

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = [
    "UTC",
    "Europe/Rome",
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Asia/Beirut",
]


def at(text: str, zone: str = "UTC", *, fold: int = 0) -> int:
    """Return the instant of an existing wall time; ``fold=1`` means the second of two."""
    wall = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold)
    return (wall.astimezone(UTC) - EPOCH) // timedelta(microseconds=1)


def daily(at_hour: int = 4, zone: str = "UTC") -> ResetPolicy:
    return ResetPolicy(mode="daily", at_hour=at_hour, zone=zone)


POLICIES = st.builds(
    ResetPolicy,
    mode=st.sampled_from(["none", "idle", "daily", "both"]),
    idle_minutes=st.integers(1, 3000),
    at_hour=st.integers(0, 23),
    zone=st.sampled_from(ZONES),
)
MOMENTS = st.integers(at("2010-01-01"), at("2030-01-01"))


def test_by_default_nothing_is_ever_reset() -> None:
    assert reset_due(ResetPolicy(), last_active_at=0, now=at("2030-01-01")) is None
    assert expires_at(ResetPolicy(), last_active_at=0) is None


def test_an_idle_reset_is_due_strictly_after_the_idle_minutes() -> None:
    policy = ResetPolicy(mode="idle", idle_minutes=30)
    last = at("2026-05-01T12:00")
    assert reset_due(policy, last_active_at=last, now=last + 30 * MINUTE) is None
    assert reset_due(policy, last_active_at=last, now=last + 30 * MINUTE + 1) == "idle"


def test_a_daily_reset_is_due_if_the_last_activity_is_strictly_before_todays_hour() -> None:
    now = at("2026-05-02T09:00")
    assert reset_due(daily(), last_active_at=at("2026-05-02T04:00") - 1, now=now) == "daily"
    assert reset_due(daily(), last_active_at=at("2026-05-02T04:00"), now=now) is None


def test_before_the_hour_yesterdays_boundary_counts() -> None:
    now = at("2026-05-02T03:59:59")
    assert reset_due(daily(), last_active_at=at("2026-05-01T04:00"), now=now) is None
    assert reset_due(daily(), last_active_at=at("2026-05-01T03:59"), now=now) == "daily"


def test_a_daily_reset_is_due_exactly_at_the_hour() -> None:
    last = at("2026-05-01T23:00")
    assert reset_due(daily(), last_active_at=last, now=at("2026-05-02T04:00") - 1) is None
    assert reset_due(daily(), last_active_at=last, now=at("2026-05-02T04:00")) == "daily"


def test_the_hour_is_in_the_policys_time_zone() -> None:
    last = at("2026-05-01T23:00", "Asia/Kolkata")
    assert expires_at(daily(4, "Asia/Kolkata"), last_active_at=last) == at("2026-05-01T22:30")


def test_mode_both_gives_the_reason_that_was_due_first() -> None:
    policy = ResetPolicy(mode="both", idle_minutes=120)
    later = at("2026-05-03T12:00")
    assert reset_due(policy, last_active_at=at("2026-05-02T03:00"), now=later) == "daily"
    assert reset_due(policy, last_active_at=at("2026-05-01T12:00"), now=later) == "idle"
    assert reset_due(policy, last_active_at=at("2026-05-01T12:00"), now=at("2026-05-01T14:00")) is None


@pytest.mark.parametrize(
    ("zone", "hour", "last", "boundary"),
    [
        # 02:00 does not exist: the clocks go from 02:00 to 03:00.
        ("Europe/Rome", 2, "2026-03-29T01:30", at("2026-03-29T03:00", "Europe/Rome")),
        # Half an hour is skipped, from 02:00 to 02:30.
        ("Australia/Lord_Howe", 2, "2026-10-04T01:30", at("2026-10-04T02:30", "Australia/Lord_Howe")),
        # Midnight does not exist.
        ("Asia/Beirut", 0, "2026-03-28T23:00", at("2026-03-29T01:00", "Asia/Beirut")),
        # The gap begins before the hour, at 23:30, and ends after it, at 00:30.
        ("America/Toronto", 0, "1919-03-30T23:00", at("1919-03-31T00:30", "America/Toronto")),
        # Samoa skipped the whole of 30 December 2011.
        ("Pacific/Apia", 4, "2011-12-29T23:00", at("2011-12-31T00:00", "Pacific/Apia")),
    ],
)
def test_in_a_gap_the_boundary_is_the_next_valid_instant(
    zone: str, hour: int, last: str, boundary: int
) -> None:
    policy, moment = daily(hour, zone), at(last, zone)
    assert expires_at(policy, last_active_at=moment) == boundary
    assert reset_due(policy, last_active_at=moment, now=boundary - 1) is None
    assert reset_due(policy, last_active_at=moment, now=boundary) == "daily"


def test_in_an_overlap_the_boundary_is_the_first_of_the_two_instants() -> None:
    policy, zone = daily(2, "Europe/Rome"), "Europe/Rome"
    first, second = at("2026-10-25T02:00", zone), at("2026-10-25T02:00", zone, fold=1)
    assert second - first == HOUR
    assert expires_at(policy, last_active_at=first - 1) == first
    assert expires_at(policy, last_active_at=first) == at("2026-10-26T02:00", zone)
    assert reset_due(policy, last_active_at=first, now=second + MINUTE) is None


def test_an_overlap_across_midnight_has_one_boundary() -> None:
    # In St. John's the clocks went back from 00:01 to 23:01, so this 23:30 is after the first midnight.
    zone = "America/St_Johns"
    after_midnight = at("2006-10-28T23:30", zone, fold=1)
    assert expires_at(daily(0, zone), last_active_at=after_midnight) == at("2006-10-30T00:00", zone)


def latest_boundary(policy: ResetPolicy, now: int) -> int:
    """Return the boundary as product §3 defines it, by a search back over the minutes of the wall clock."""
    zone = ZoneInfo(policy.zone)
    minute = now // MINUTE * MINUTE

    def wall(moment: int) -> datetime:
        return (EPOCH + timedelta(microseconds=moment)).astimezone(zone).replace(tzinfo=None)

    while True:
        here, before = wall(minute), wall(minute - MINUTE)
        mark = here.replace(hour=policy.at_hour, minute=0)
        # Take the first time that the clock passes the hour: after a change back, it passes the hour again.
        if before < mark <= here and all(wall(minute - back * MINUTE) < mark for back in range(2, 181)):
            return minute
        minute -= MINUTE


CLOCK_CHANGES = ["2026-03-08", "2026-03-29", "2026-06-15", "2026-10-25", "2026-11-01"]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["UTC", "Europe/Rome", "America/New_York"]),
    st.integers(0, 4) | st.integers(0, 23),
    st.builds(
        lambda day, minutes: at(day) + minutes * MINUTE,
        st.sampled_from(CLOCK_CHANGES),
        st.integers(-600, 1800),
    ),
    st.integers(-36 * 60, 0),
)
def test_a_daily_reset_agrees_with_a_search_back_over_the_wall_clock(
    zone: str, hour: int, now: int, back: int
) -> None:
    policy, last = daily(hour, zone), now + back * MINUTE
    due = reset_due(policy, last_active_at=last, now=now) is not None
    assert due is (last < latest_boundary(policy, now))


@settings(max_examples=100)
@given(POLICIES, MOMENTS, st.integers(0, 5 * 24 * HOUR))
def test_a_reset_is_due_exactly_from_the_expiry_on(policy: ResetPolicy, last: int, later: int) -> None:
    expiry = expires_at(policy, last_active_at=last)
    due = reset_due(policy, last_active_at=last, now=last + later)
    assert (due is not None) is (expiry is not None and last + later >= expiry)
    if expiry is not None:
        assert expiry > last
        assert reset_due(policy, last_active_at=last, now=expiry - 1) is None
        assert reset_due(policy, last_active_at=last, now=expiry) is not None


def test_the_most_specific_policy_applies() -> None:
    default, chat, platform, both = (ResetPolicy(mode="idle", idle_minutes=n) for n in (1, 2, 3, 4))
    policies = ResetPolicies(
        default=default,
        by_place={(None, "group"): chat, ("slack", None): platform, ("slack", "dm"): both},
    )
    assert policies.resolve("slack", "dm") is both
    assert policies.resolve("slack", "group") is platform
    assert policies.resolve("signal", "group") is chat
    assert policies.resolve("signal", "dm") is default
    assert ResetPolicies().resolve("signal", "dm") == ResetPolicy(mode="none")


def test_policies_do_not_change_with_the_mapping_that_they_were_made_from() -> None:
    mine: dict[Place, ResetPolicy] = {("slack", None): daily()}
    policies = ResetPolicies(by_place=mine)
    mine.clear()
    assert policies.resolve("slack", "dm") == daily()


@pytest.mark.parametrize("place", [(None, "forum"), ("No Such", None), ("slack", "forum"), ("", "dm")])
def test_policies_for_unknown_platforms_and_chat_types_are_refused(place: Any) -> None:
    with pytest.raises(InvalidValue):
        ResetPolicies(by_place={place: ResetPolicy()})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"mode": "weekly"}, "none, idle, daily, both"),
        ({"idle_minutes": 0}, "idle_minutes 0"),
        ({"idle_minutes": 10**9}, "idle_minutes"),
        ({"idle_minutes": True}, "idle_minutes True"),
        ({"at_hour": 24}, "from 0 to 23"),
        ({"at_hour": -1}, "at_hour -1"),
        ({"at_hour": 4.5}, "at_hour 4.5"),
        ({"zone": "Europe/Roma"}, "did you mean Europe/Rome"),
        ({"zone": "###"}, "IANA name"),
        ({"zone": "Europe"}, "time zone"),
        ({"zone": "../etc/passwd"}, "time zone"),
        ({"zone": None}, "time zone"),
    ],
)
def test_an_invalid_policy_is_refused_with_the_correct_form(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        ResetPolicy(**wrong)


def test_memory_is_flushed_ten_minutes_before_the_session_expires() -> None:
    last, expiry = at("2026-05-01T12:00"), at("2026-05-02T04:00")
    assert not flush_due(daily(), last_active_at=last, now=expiry - 10 * MINUTE - 1)
    assert flush_due(daily(), last_active_at=last, now=expiry - 10 * MINUTE)


def test_a_session_that_expired_unflushed_is_still_flushed() -> None:
    assert flush_due(daily(), last_active_at=at("2026-05-01T12:00"), now=at("2026-05-09T12:00"))


def test_a_short_idle_time_does_not_flush_before_half_of_it_has_passed() -> None:
    policy, last = ResetPolicy(mode="idle", idle_minutes=4), at("2026-05-01T12:00")
    assert not flush_due(policy, last_active_at=last, now=last + 2 * MINUTE - 1)
    assert flush_due(policy, last_active_at=last, now=last + 2 * MINUTE)


def test_a_session_that_never_expires_is_never_flushed() -> None:
    assert not flush_due(ResetPolicy(), last_active_at=0, now=at("2030-01-01"))


def is_flushed(policy: ResetPolicy, *, last: int, now: int) -> bool:
    """Return whether a flush is due, and the session did not expire too long ago."""
    expiry = expires_at(policy, last_active_at=last)
    return flush_due(policy, last_active_at=last, now=now) and expiry is not None and expiry > now - DAY


@settings(max_examples=500)
@given(policy=POLICIES, now=MOMENTS, quiet=st.integers(-HOUR, 6 * DAY))
# A few minutes before the hour, which random examples may miss.
@example(policy=daily(), now=at("2026-05-02T03:55"), quiet=HOUR)
# Samoa had no 30 December 2011, so two days have their boundary at the same instant.
@example(policy=daily(4, "Pacific/Apia"), now=at("2011-12-31T05:00", "Pacific/Apia"), quiet=HOUR + 1)
@example(policy=daily(4, "Pacific/Apia"), now=at("2011-12-31T00:30", "Pacific/Apia"), quiet=HOUR)
def test_the_sessions_to_flush_are_one_range_of_last_activity(
    policy: ResetPolicy, now: int, quiet: int
) -> None:
    window = flush_window(policy, now=now)
    if window is None:
        assert policy.mode == "none"
        return
    edges = {window.after, window.until}
    for last in {now - quiet, *edges, *(edge + 1 for edge in edges)}:
        assert (window.after < last <= window.until) == is_flushed(policy, last=last, now=now)


def test_the_surface_whose_policy_expires_first_decides_about_the_flush() -> None:
    hourly = ResetPolicy(mode="idle", idle_minutes=60)
    policies = ResetPolicies(by_place={("telegram", None): hourly, ("schedule", None): daily()})
    phone = Source(platform="telegram", chat_id="1", chat_type="dm", user_id="ana")
    own = Source(platform="schedule", chat_id="1", chat_type="dm")
    last = at("2026-05-01T12:00")

    def wanted(*surfaces: Source, after: int) -> bool:
        return any_flush_due(policies, surfaces, last_active_at=last, now=last + after)

    assert not wanted(phone, after=50 * MINUTE)
    assert wanted(phone, after=50 * MINUTE + 1)
    assert wanted(LOCAL_CLI, phone, after=HOUR)
    assert not wanted(LOCAL_CLI, after=HOUR)
    assert not wanted(own, after=DAY), "a schedule gets no messages, so its session is never reset"
    assert wanted(phone, after=HOUR + DAY)
    assert not wanted(phone, after=HOUR + DAY + 1), "a session that expired long ago is not flushed"
    assert not wanted(after=HOUR)


def test_every_policy_is_listed_once() -> None:
    idle = ResetPolicy(mode="idle")
    policies = ResetPolicies(
        by_place={(None, "group"): idle, ("telegram", None): idle, ("telegram", "dm"): daily()}
    )
    assert policies.all == (ResetPolicy(), idle, daily())


def test_the_notice_names_the_start_of_the_session_and_how_to_resume_the_last_one() -> None:
    notice = reset_notice(daily(4, "Europe/Rome"), "daily")
    assert notice.user == "fresh conversation since 04:00; /resume brings the last one back"
    assert "daily reset at 04:00 Europe/Rome" in notice.agent
    assert "\n" not in notice.agent


@pytest.mark.parametrize(
    ("minutes", "words"),
    [
        (1, "1 minute"),
        (45, "45 minutes"),
        (60, "60 minutes"),
        (120, "2 hours"),
        (1440, "24 hours"),
        (4320, "3 days"),
    ],
)
def test_the_idle_time_is_shown_in_words(minutes: int, words: str) -> None:
    notice = reset_notice(ResetPolicy(mode="idle", idle_minutes=minutes), "idle")
    assert notice.user.startswith(f"fresh conversation after {words} without a message;")
    assert f"idle for more than {words}" in notice.agent
