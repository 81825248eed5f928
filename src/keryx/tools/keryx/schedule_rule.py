"""The rule of a schedule as tools take it and show it."""

from typing import Final

from keryx.clock import Micros
from keryx.core.schedules.rules.timing import next_fires, parse_rule
from keryx.core.values.time_zone import datetime_of, zone_of
from keryx.errors import ToolFailed

RULE: Final = "When: five or six cron fields, @daily, 'every 2h', or a time like 2026-03-01 09:00"


def next_times(rule: str, *, zone: str, anchor_at: Micros, now: Micros) -> str:
    """Return a line for each of the next times of a rule, or raise ``ToolFailed``."""
    fires = next_fires(parse_rule(rule, zone=zone, anchor_at=anchor_at), after=now)
    if not fires:
        raise ToolFailed(f"schedule {rule!r}: that time has passed; give one that is still to come")
    return "\n".join(f"{datetime_of(at, zone_of(zone)):%a %Y-%m-%d %H:%M %Z}" for at in fires)
