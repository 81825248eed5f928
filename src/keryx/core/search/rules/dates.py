"""The dates that ``before:`` and ``after:`` understand.

Pure: the current time and the time zone are parameters.
"""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from keryx.clock import DAY, HOUR, SECOND, Micros

_DATE: Final = re.compile(r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2}))?)?")
_AGO: Final = re.compile(r"([0-9]{1,6})([hdwmy])")
_UNITS: Final = {"h": HOUR, "d": DAY, "w": 7 * DAY, "m": 30 * DAY, "y": 365 * DAY}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def parse_instant(text: str, *, now: Micros, zone: tzinfo) -> Micros | None:
    """Return the time meant by ``text``, or None if ``text`` is not a date.

    ``2026``, ``2026-05`` and ``2026-05-31`` mean the beginning of that year, month or day in ``zone``. ``today`` and
    ``yesterday`` mean the beginning of that day. ``7d`` means seven days ago; the other units are ``h``, ``w``, ``m``
    (30 days) and ``y`` (365 days).
    """
    word = text.lower()
    if ago := _AGO.fullmatch(word):
        return now - int(ago[1]) * _UNITS[ago[2]]
    try:
        if word in ("today", "yesterday"):
            day = (_EPOCH + timedelta(microseconds=now)).astimezone(zone).date()
            day -= timedelta(days=word == "yesterday")
            return _start_of(day.year, day.month, day.day, zone)
        if date := _DATE.fullmatch(word):
            return _start_of(int(date[1]), int(date[2] or 1), int(date[3] or 1), zone)
    except (ValueError, OverflowError):
        # 31 February, the year 0, or a day before Python's calendar begins.
        return None
    return None


def _start_of(year: int, month: int, day: int, zone: tzinfo) -> Micros:
    moment = datetime(year, month, day, tzinfo=zone)
    return (moment - _EPOCH) // timedelta(seconds=1) * SECOND
