"""Time zones: names, and wall times at clock changes."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.core.values.time_zone import datetime_of, instant_of, micros_of, zone_of
from keryx.errors import InvalidValue


@pytest.mark.parametrize(
    "name", ["Europe/Rom", "America", "", "../etc/passwd", "/etc/passwd", "Mars/Base\x00"]
)
def test_an_unknown_zone_is_refused(name: str) -> None:
    with pytest.raises(InvalidValue, match="is not known"):
        zone_of(name)


def test_the_nearest_zone_is_named() -> None:
    with pytest.raises(InvalidValue, match="did you mean Europe/Rome"):
        zone_of("Europe/Rom")
    with pytest.raises(InvalidValue, match="use an IANA name"):
        zone_of("?")


@pytest.mark.parametrize(
    ("zone", "wall", "instant"),
    [
        ("UTC", "2026-01-01T00:00", "2026-01-01T00:00Z"),
        ("Europe/Rome", "2026-01-01T09:00", "2026-01-01T08:00Z"),
        ("Europe/Rome", "2026-03-29T02:30", "2026-03-29T01:00Z"),
        ("Europe/Rome", "2026-03-29T02:00", "2026-03-29T01:00Z"),
        ("Europe/Rome", "2026-03-29T03:00", "2026-03-29T01:00Z"),
        ("Europe/Rome", "2026-10-25T02:30", "2026-10-25T00:30Z"),
        ("Australia/Lord_Howe", "2026-10-04T02:15", "2026-10-03T15:30Z"),
        ("Pacific/Apia", "2011-12-30T12:00", "2011-12-30T10:00Z"),
    ],
)
def test_a_skipped_wall_time_becomes_the_next_instant_and_a_repeated_one_the_first(
    zone: str, wall: str, instant: str
) -> None:
    expected = micros_of(datetime.fromisoformat(instant))
    assert instant_of(datetime.fromisoformat(wall), zone_of(zone)) == expected


@given(st.integers(-(10**15), 10**16), st.sampled_from(["UTC", "Europe/Rome", "Asia/Kathmandu"]))
@settings(max_examples=100)
def test_an_instant_survives_any_zone(at: int, zone: str) -> None:
    assert micros_of(datetime_of(at, zone_of(zone))) == at


@pytest.mark.parametrize("at", [10**30, 10**18, -(10**18)])
def test_times_beyond_the_calendar_are_refused(at: int) -> None:
    with pytest.raises(InvalidValue, match="within the years 1 to 9999"):
        datetime_of(at, UTC)
