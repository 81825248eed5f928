"""Decide when a schedule fires (cron expression, fixed interval, one instant), and which missed fires to run.

Fires are instants. A rule gives the same instants from every starting point, so a fire can be claimed once by its
instant, whichever gateway computes it.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice, takewhile
from typing import Final, Literal, TypeAlias, get_args

from cronsim import CronSim, CronSimError

from keryx.clock import DAY, HOUR, MINUTE, Micros
from keryx.core.values.time_zone import datetime_of, instant_of, micros_of, zone_of
from keryx.errors import InvalidValue
from keryx.values import dataclass

MissedPolicy = Literal["skip", "once", "all"]
OverlapPolicy = Literal["skip", "queue"]
MISSED_POLICIES: Final[tuple[MissedPolicy, ...]] = get_args(MissedPolicy)
OVERLAP_POLICIES: Final[tuple[OverlapPolicy, ...]] = get_args(OverlapPolicy)

PREVIEW_COUNT: Final = 5
LATE_MAX: Final[Micros] = MINUTE
"""A fire that is noticed within this time after its instant is not missed."""
SKIPS_MAX: Final = 100
INTERVAL_MIN: Final[Micros] = MINUTE

_MACROS: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_UNITS: Final[dict[str, Micros]] = {"m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}
_EVERY: Final = re.compile(r"every\s+((?:\d{1,6}\s*[mhdw][a-z]*\s*)+)", re.IGNORECASE)
_AMOUNT: Final = re.compile(r"(\d+)\s*([mhdw])([a-z]*)", re.IGNORECASE)
_UNIT_ENDINGS: Final = {
    "m": {"", "in", "ins", "inute", "inutes"},
    "h": {"", "r", "rs", "our", "ours"},
    "d": {"", "ay", "ays"},
    "w": {"", "eek", "eeks"},
}
_ONCE: Final = re.compile(r"(?:(?:once|at)\s+)?(\d{4}-\d\d-\d\d.*)", re.IGNORECASE)

_SYNTAX_HINT: Final = (
    "write five or six cron fields (0 9 * * MON-FRI), @daily, 'every 2h', or a time (2026-03-01 09:00)"
)
_LENGTH_MAX: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class CronRule:
    """A cron expression in the local time of an IANA zone.

    Clock changes are handled as in Debian's cron: a fixed time that is skipped fires right after the gap, a fixed time
    that occurs twice fires once, and ``*`` follows real time.
    """

    expression: str
    zone: str

    def __post_init__(self) -> None:
        zone_of(self.zone)
        try:
            CronSim(_expanded(self.expression), datetime(2000, 1, 1, tzinfo=UTC))
        except CronSimError as error:
            raise InvalidValue(
                f"schedule {self.expression!r}: {str(error).lower()}; {_SYNTAX_HINT}"
            ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class EveryRule:
    """Fires at ``anchor_at`` plus each multiple of ``interval``, in real time: clock changes have no effect."""

    interval: Micros
    anchor_at: Micros

    def __post_init__(self) -> None:
        if self.interval < INTERVAL_MIN:
            raise InvalidValue(
                "schedule 'every …': the interval must be at least one minute, like 'every 5m'"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class OnceRule:
    """Fires at one instant."""

    at: Micros


ScheduleRule: TypeAlias = CronRule | EveryRule | OnceRule


@dataclass(frozen=True, slots=True, kw_only=True)
class DueFires:
    """The due instants of a schedule: those to fire now and those to record as skipped, both oldest first.

    If the schedule missed more instants than are listed, all instants before ``skipped_before`` were skipped.
    """

    fires: tuple[Micros, ...] = ()
    skips: tuple[Micros, ...] = ()
    skipped_before: Micros | None = None


def parse_rule(text: str, *, zone: str, anchor_at: Micros) -> ScheduleRule:
    """Return the rule in ``text``; raise InvalidValue if it cannot be parsed or never fires.

    ``zone`` is the time zone of the rule; ``every`` counts from ``anchor_at``.
    """
    if len(text) > _LENGTH_MAX:
        raise InvalidValue(f"schedule of {len(text)} characters: {_SYNTAX_HINT}")
    words = " ".join(text.split())
    rule: ScheduleRule
    if once := _ONCE.fullmatch(words):
        rule = OnceRule(at=_instant(once[1], zone))
    elif words.lower().startswith("every"):
        rule = EveryRule(interval=_interval(words), anchor_at=anchor_at)
    else:
        rule = CronRule(expression=words, zone=zone)
    if not isinstance(rule, OnceRule) and not next_fires(rule, after=anchor_at, count=1):
        raise InvalidValue(f"schedule {words!r}: this day does not exist; {_SYNTAX_HINT}")
    return rule


def next_fires(rule: ScheduleRule, *, after: Micros, count: int = PREVIEW_COUNT) -> list[Micros]:
    """Return the next ``count`` instants strictly after ``after``; fewer if the rule ends."""
    return list(islice(_fires(rule, after), count))


def due_fires(
    rule: ScheduleRule, *, last_at: Micros, now: Micros, policy: MissedPolicy, limit: int = 10
) -> DueFires:
    """Return the due instants after ``last_at`` up to ``now``.

    ``skip`` fires the newest instant if it is not late, ``once`` the newest in any case, ``all`` the newest ``limit``.
    """
    wanted = limit if policy == "all" else 1
    instants, complete = _newest(rule, after=last_at, until=now, count=wanted + SKIPS_MAX)
    skipped_before = None if complete else instants[0]
    if policy == "skip" and instants and now - instants[-1] > LATE_MAX:
        wanted = 0
    skipped_count = max(0, len(instants) - wanted)
    return DueFires(
        fires=tuple(instants[skipped_count:]),
        skips=tuple(instants[:skipped_count]),
        skipped_before=skipped_before,
    )


def may_overlap(policy: OverlapPolicy, *, running: bool) -> bool:
    """Return whether a fire becomes an inbox item now; otherwise it is recorded as skipped.

    With ``queue`` the item waits behind the running turn: a session never runs two turns at once.
    """
    return policy == "queue" or not running


def _fires(rule: ScheduleRule, after: Micros) -> Iterator[Micros]:
    match rule:
        case OnceRule():
            if rule.at > after:
                yield rule.at
        case EveryRule():
            # The anchor is the creation of the schedule: the first fire is one interval later.
            number = max(1, (after - rule.anchor_at) // rule.interval + 1)
            while True:
                yield rule.anchor_at + number * rule.interval
                number += 1
        case _:
            for moment in CronSim(_expanded(rule.expression), datetime_of(after, zone_of(rule.zone))):
                at = micros_of(moment)
                # In the second pass of an overlap, cronsim begins with fires of the first pass.
                if at > after:
                    yield at
                    after = at


def _newest(rule: ScheduleRule, *, after: Micros, until: Micros, count: int) -> tuple[list[Micros], bool]:
    """Return the newest ``count`` instants in (after, until], oldest first, and whether there are no others.

    Looks back in growing windows, so that a year of missed minutes costs no more than an hour.
    """
    window = HOUR
    while True:
        start = max(after, until - window)
        found = list(takewhile(lambda at: at <= until, _fires(rule, start)))
        if start == after or len(found) > count:
            return found[-count:], start == after and len(found) <= count
        window *= 8


def _expanded(expression: str) -> str:
    if expression.startswith("@"):
        return _MACROS.get(expression.lower(), expression)
    return expression


def _interval(words: str) -> Micros:
    match = _EVERY.fullmatch(words)
    total = 0
    for amount, unit, ending in _AMOUNT.findall(match[1]) if match else ():
        if ending.lower() not in _UNIT_ENDINGS[unit.lower()]:
            raise InvalidValue(
                f"schedule {words!r}: {unit}{ending} is not a unit; use m, h, d or w, like 'every 90m'"
            )
        total += int(amount) * _UNITS[unit.lower()]
    if not match:
        raise InvalidValue(
            f"schedule {words!r}: give the interval with m, h, d or w, like 'every 2h' or 'every 1h30m'"
        )
    return total


def _instant(text: str, zone: str) -> Micros:
    time_zone = zone_of(zone)
    try:
        moment = datetime.fromisoformat(text)
        return instant_of(moment, time_zone) if moment.tzinfo is None else micros_of(moment)
    except (ValueError, OverflowError):
        raise InvalidValue(f"schedule {text!r} is not a valid time; write it like 2026-03-01 09:00") from None
