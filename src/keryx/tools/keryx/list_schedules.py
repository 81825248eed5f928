"""``list_schedules``: list the person's schedules."""

from keryx.core.conversations.transactions.command_context import span
from keryx.core.turns.views.overview import show_overview
from keryx.store.database import ReadTx
from keryx.tools.base_tool import Arguments
from keryx.tools.keryx.store_reader import LISTED, StoreReader
from keryx.tools.tool import ToolCall


class ListSchedules(StoreReader):
    """Lists schedules."""

    name = "list_schedules"
    description = "List the schedules and their next times."
    is_private = True

    def read(self, tx: ReadTx, call: ToolCall, given: Arguments) -> str:  # noqa: ARG002 - it takes none
        """Return a line for each schedule."""
        overview = show_overview(tx, person_id=call.person_id, limit=LISTED)
        lines = [
            f"{each.schedule_id}. {each.name}: {each.rule}, next in {span(each.due_at - tx.now)}"
            for each in overview.schedules
        ]
        return (
            "\n".join(lines) or "Nothing is scheduled. /schedule add every 2h | look at the mail makes one."
        )
