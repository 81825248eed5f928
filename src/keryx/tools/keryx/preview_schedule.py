"""``preview_schedule``: show the next times at which a schedule would run."""

from keryx.core.people.rules.toolset import PLAN
from keryx.store.database import Database, ReadTx
from keryx.tools.base_tool import Arguments, Parameter
from keryx.tools.keryx.schedule_rule import RULE, next_times
from keryx.tools.keryx.store_reader import StoreReader
from keryx.tools.tool import ToolCall


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
