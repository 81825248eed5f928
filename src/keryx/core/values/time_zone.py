"""Convert names to time zones, and wall times to instants.

A wall time that a clock change skips becomes the next valid instant. A wall time that occurs twice becomes the
first instant.
"""

from datetime import UTC, datetime, timedelta, tzinfo
from difflib import get_close_matches
from zoneinfo import ZoneInfo, available_timezones

from keryx.clock import Micros
from keryx.errors import InvalidValue

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def zone_of(name: str) -> ZoneInfo:
    """Return the IANA zone called ``name``, or raise InvalidValue with the nearest names."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, TypeError, OSError):
        # ZoneInfo raises OSError for a folder of its database, ValueError for a path outside, TypeError for non-text.
        near = get_close_matches(str(name), available_timezones(), n=3)
    hint = f"did you mean {', '.join(near)}?" if near else "use an IANA name like Europe/Rome"
    raise InvalidValue(f"time zone {name!r} is not known: {hint}")


def micros_of(moment: datetime) -> Micros:
    """Return the instant of an aware ``moment``."""
    return (moment - EPOCH) // _MICROSECOND


def datetime_of(at: Micros, zone: tzinfo) -> datetime:
    """Return the instant ``at`` as local time of ``zone``; raise InvalidValue outside the calendar."""
    try:
        return (EPOCH + timedelta(microseconds=at)).astimezone(zone)
    except OverflowError:
        raise InvalidValue(
            f"time {at}: microseconds since 1970 are expected, within the years 1 to 9999"
        ) from None


def instant_of(wall: datetime, zone: ZoneInfo) -> Micros:
    """Return the instant when clocks in ``zone`` first show the naive time ``wall``, or first pass a skipped one."""
    old = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if old.astimezone(zone).replace(tzinfo=None) == wall:
        return micros_of(old)
    # The time is skipped: the clocks jump between its readings with the new offset and with the old one.
    low = micros_of(wall.replace(tzinfo=zone, fold=1))
    high = micros_of(old)
    while high - low > 1:
        middle = (low + high) // 2
        if datetime_of(middle, zone).replace(tzinfo=None) < wall:
            low = middle
        else:
            high = middle
    return high
