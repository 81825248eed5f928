"""Schedules: rules, fires across clock changes, and missed fires."""

from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.clock import DAY, HOUR, MINUTE, SECOND
from keryx.core.schedules.rules.timing import (
    SKIPS_MAX,
    CronRule,
    DueFires,
    EveryRule,
    MissedPolicy,
    OnceRule,
    ScheduleRule,
    due_fires,
    may_overlap,
    next_fires,
    parse_rule,
)
from keryx.core.values.time_zone import datetime_of, micros_of, zone_of
from keryx.errors import InvalidValue

ROME = "Europe/Rome"


def at(text: str) -> int:
    return micros_of(datetime.fromisoformat(text))


NOON = at("2026-01-01T12:00Z")


def parse(text: str, zone: str = ROME) -> ScheduleRule:
    return parse_rule(text, zone=zone, anchor_at=NOON)


def shown(rule: ScheduleRule, after: str, count: int = 5, zone: str = ROME) -> list[str]:
    fires = next_fires(rule, after=at(after), count=count)
    return [f"{datetime_of(fire, zone_of(zone)):%m-%d %H:%M %z}" for fire in fires]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("0 9 * * MON-FRI", CronRule(expression="0 9 * * MON-FRI", zone=ROME)),
        ("  0  9 * * 1 ", CronRule(expression="0 9 * * 1", zone=ROME)),
        ("*/30 0 9 * jan mon", CronRule(expression="*/30 0 9 * jan mon", zone=ROME)),
        ("@Daily", CronRule(expression="@Daily", zone=ROME)),
        ("every 2h", EveryRule(interval=2 * HOUR, anchor_at=NOON)),
        ("Every 1h 30 min", EveryRule(interval=90 * MINUTE, anchor_at=NOON)),
        ("every 2 weeks", EveryRule(interval=14 * DAY, anchor_at=NOON)),
        ("every 1d12hours", EveryRule(interval=36 * HOUR, anchor_at=NOON)),
        ("2026-03-01 09:00", OnceRule(at=at("2026-03-01T08:00Z"))),
        ("at 2026-03-01T09:00:30+00:00", OnceRule(at=at("2026-03-01T09:00:30Z"))),
        ("once 2026-03-01", OnceRule(at=at("2026-02-28T23:00Z"))),
        ("2026-03-29 02:30", OnceRule(at=at("2026-03-29T01:00Z"))),
    ],
)
def test_a_rule_is_read_from_its_text(text: str, rule: ScheduleRule) -> None:
    assert parse(text) == rule


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "wrong number of fields"),
        ("soon", "wrong number of fields"),
        ("@reboot", "wrong number of fields"),
        ("61 * * * *", "bad minute"),
        ("* * * * * * *", "wrong number of fields"),
        ("0 0 30 2 *", "bad day-of-month"),
        ("0 0 * 2 MON#5,XYZ", "bad day-of-week"),
        ("0 0 0 30 FEB *", "bad day-of-month"),
        ("every", "give the interval"),
        ("every day", "give the interval"),
        ("every 5s", "give the interval"),
        ("every 9999999999h", "give the interval"),
        ("every 5 moons", "moons is not a unit"),
        ("every 0m", "at least one minute"),
        ("2026-02-30 09:00", "is not a valid time"),
        ("2026-03-01 25:00", "is not a valid time"),
        ("0001-01-01 00:00", "is not a valid time"),
        ("9" * 300, "schedule of 300 characters"),
    ],
)
def test_a_wrong_rule_is_refused_with_the_correct_form(text: str, complaint: str) -> None:
    with pytest.raises(InvalidValue, match=complaint):
        parse(text)


def test_a_rule_that_never_fires_is_refused() -> None:
    with pytest.raises(InvalidValue, match="this day does not exist"):
        parse("0 0 */31 * MON#2")


def test_an_unknown_zone_is_refused() -> None:
    for text in ("@daily", "2026-03-01 09:00"):
        with pytest.raises(InvalidValue, match="time zone 'Mars/Base' is not known"):
            parse(text, zone="Mars/Base")


@given(st.text(max_size=30) | st.from_regex(r"[0-9*/,LW#@a-zA-Z -]{0,25}", fullmatch=True))
@settings(max_examples=100, deadline=None)
def test_any_text_is_a_rule_or_is_refused(text: str) -> None:
    try:
        rule = parse(text)
    except InvalidValue:
        return
    fires = next_fires(rule, after=NOON, count=2)
    assert fires == sorted(set(fires))


@pytest.mark.parametrize(
    ("macro", "first"),
    [
        ("@hourly", "01-05 11:00 +0100"),
        ("@daily", "01-06 00:00 +0100"),
        ("@midnight", "01-06 00:00 +0100"),
        ("@weekly", "01-11 00:00 +0100"),
        ("@monthly", "02-01 00:00 +0100"),
        ("@yearly", "01-01 00:00 +0100"),
        ("@annually", "01-01 00:00 +0100"),
    ],
)
def test_a_macro_is_the_same_as_its_expression(macro: str, first: str) -> None:
    assert shown(parse(macro), "2026-01-05T09:30Z", count=1) == [first]


def test_a_fixed_time_in_the_spring_gap_fires_right_after_it() -> None:
    assert shown(parse("30 2 * * *"), "2026-03-27T12:00Z", count=3) == [
        "03-28 02:30 +0100",
        "03-29 03:00 +0200",
        "03-30 02:30 +0200",
    ]


def test_a_fixed_time_in_the_autumn_overlap_fires_once() -> None:
    assert shown(parse("30 2 * * *"), "2026-10-24T12:00Z", count=2) == [
        "10-25 02:30 +0200",
        "10-26 02:30 +0100",
    ]


def test_a_fixed_time_does_not_fire_again_between_the_passes_of_an_overlap() -> None:
    assert shown(parse("30 2 * * *"), "2026-10-25T01:15Z", count=1) == ["10-26 02:30 +0100"]


def test_stars_follow_real_time_through_the_overlap() -> None:
    assert shown(parse("*/30 * * * *"), "2026-10-24T23:45Z", count=5) == [
        "10-25 02:00 +0200",
        "10-25 02:30 +0200",
        "10-25 02:00 +0100",
        "10-25 02:30 +0100",
        "10-25 03:00 +0100",
    ]


def test_intervals_count_real_time_from_their_anchor() -> None:
    rule = EveryRule(interval=2 * HOUR, anchor_at=at("2026-03-28T23:00Z"))
    assert shown(rule, "2026-03-01T00:00Z", count=1) == ["03-29 03:00 +0200"]
    assert shown(rule, "2026-03-29T01:00Z", count=2) == ["03-29 05:00 +0200", "03-29 07:00 +0200"]
    assert next_fires(rule, after=at("2026-03-29T00:59:59Z"), count=1) == [at("2026-03-29T01:00Z")]


def test_one_instant_fires_once() -> None:
    rule = OnceRule(at=NOON)
    assert next_fires(rule, after=NOON - 1) == [NOON]
    assert next_fires(rule, after=NOON) == []


@given(
    st.sampled_from(["30 2 * * *", "*/20 * * * *", "0 */3 * * *", "0,45 1-3 * * *", "15 30 2 * * *"]),
    st.integers(at("2026-03-27T00:00Z"), at("2026-03-31T00:00Z"))
    | st.integers(at("2026-10-23T00:00Z"), at("2026-10-27T00:00Z")),
)
@settings(max_examples=100, deadline=None)
def test_a_rule_gives_the_same_instants_from_every_starting_point(expression: str, start: int) -> None:
    rule = CronRule(expression=expression, zone=ROME)
    now = start + 2 * DAY
    early = due_fires(rule, last_at=start - DAY, now=now, policy="all", limit=300).fires
    late = due_fires(rule, last_at=start, now=now, policy="all", limit=300).fires
    assert late == tuple(fire for fire in early if fire > start)
    assert late


HOURLY = CronRule(expression="0 * * * *", zone="UTC")


@pytest.mark.parametrize(
    ("policy", "late", "fires", "skips"),
    [
        ("skip", 0, [3], [1, 2]),
        ("skip", MINUTE, [3], [1, 2]),
        ("skip", MINUTE + 1, [], [1, 2, 3]),
        ("once", 30 * MINUTE, [3], [1, 2]),
        ("all", 30 * MINUTE, [2, 3], [1]),
    ],
)
def test_missed_fires_follow_the_policy(
    policy: MissedPolicy, late: int, fires: list[int], skips: list[int]
) -> None:
    due = due_fires(HOURLY, last_at=NOON, now=NOON + 3 * HOUR + late, policy=policy, limit=2)
    assert due == DueFires(
        fires=tuple(NOON + hour * HOUR for hour in fires), skips=tuple(NOON + hour * HOUR for hour in skips)
    )


@pytest.mark.parametrize("policy", ["skip", "once", "all"])
def test_nothing_is_due_before_its_time_or_after_the_clock_went_back(policy: MissedPolicy) -> None:
    assert due_fires(HOURLY, last_at=NOON, now=NOON + HOUR - 1, policy=policy) == DueFires()
    assert due_fires(HOURLY, last_at=NOON, now=NOON - DAY, policy=policy) == DueFires()


def test_a_long_absence_is_summarised_and_not_listed() -> None:
    minutely = CronRule(expression="* * * * *", zone="UTC")
    due = due_fires(minutely, last_at=NOON, now=NOON + 365 * DAY, policy="once")
    assert due.fires == (NOON + 365 * DAY,)
    assert len(due.skips) == SKIPS_MAX
    assert due.skipped_before == due.skips[0]


@given(st.integers(0, 400), st.sampled_from([MINUTE, 7 * MINUTE, HOUR, 5 * DAY]), st.integers(1, 300))
@settings(max_examples=100, deadline=None)
def test_every_missed_instant_is_fired_or_skipped_or_before_the_listed_ones(
    missed: int, interval: int, limit: int
) -> None:
    rule = EveryRule(interval=interval, anchor_at=NOON)
    due = due_fires(rule, last_at=NOON, now=NOON + missed * interval + SECOND, policy="all", limit=limit)
    named = [*due.skips, *due.fires]
    assert len(due.fires) == min(missed, limit)
    assert named == [NOON + number * interval for number in range(missed - len(named) + 1, missed + 1)]
    assert (due.skipped_before is None) == (len(named) == missed)
    assert len(due.skips) == min(max(missed - limit, 0), SKIPS_MAX)


def test_a_fire_waits_or_is_skipped_while_the_last_one_runs() -> None:
    assert may_overlap("skip", running=False)
    assert not may_overlap("skip", running=True)
    assert may_overlap("queue", running=True)
