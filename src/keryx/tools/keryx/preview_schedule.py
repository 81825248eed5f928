"""``preview_schedule``: show when a schedule with a rule would run."""

from typing import Final

from keryx.clock import Micros
from keryx.core.people.rules.toolset import PLAN
from keryx.core.schedules.rules.timing import next_fires, parse_rule
from keryx.core.values.time_zone import datetime_of, zone_of
from keryx.errors import InvalidValue, ToolFailed
from keryx.store.database import Database, ReadTx
from keryx.tools.base_tool import Arguments, Parameter
from keryx.tools.keryx.store_reader import StoreReader
from keryx.tools.tool import ToolCall

RULE: Final = "When: five or six cron fields, @daily, 'every 2h', or a time like 2026-03-01 09:00"


class PreviewSchedule(StoreReader):
    """Shows the next times at which a schedule with a rule would run."""

    name = "preview_schedule"
    description = "Show the next five times at which a schedule with this rule would run, before making it."
    toolset = PLAN
    parameters = {"rule": Parameter(help=RULE, required=True)}  # noqa: RUF012 - never changed

    def __init__(self, database: Database, zone: str) -> None:
        super().__init__(database)
        self._zone = zone

    def read(self, tx: ReadTx, call: ToolCall, given: Arguments) -> str:  # noqa: ARG002 - the same for everybody
        """Return a line for each time."""
        return next_times(given.text("rule"), zone=self._zone, anchor_at=tx.now, now=tx.now)


def next_times(rule: str, *, zone: str, anchor_at: Micros, now: Micros) -> str:
    """Return a line for each of the next times of a rule, or raise ``ToolFailed``."""
    try:
        fires = next_fires(parse_rule(rule, zone=zone, anchor_at=anchor_at), after=now)
    except InvalidValue as error:
        raise ToolFailed(str(error)) from error
    if not fires:
        raise ToolFailed(f"schedule {rule!r}: that time has passed; give one that is still to come")
    return "\n".join(f"{datetime_of(at, zone_of(zone)):%a %Y-%m-%d %H:%M %Z}" for at in fires)
