"""``list_processes``: list the person's background processes."""

from keryx.core.conversations.transactions.command_context import span
from keryx.core.turns.views.overview import show_overview
from keryx.store.database import ReadTx
from keryx.tools.base_tool import Arguments
from keryx.tools.keryx.store_reader import LISTED, StoreReader
from keryx.tools.tool import ToolCall


class ListProcesses(StoreReader):
    """Lists background processes."""

    name = "list_processes"
    description = "List the background processes that run."
    is_private = True

    def read(self, tx: ReadTx, call: ToolCall, given: Arguments) -> str:  # noqa: ARG002 - it takes none
        """Return a line for each process."""
        overview = show_overview(tx, person_id=call.person_id, limit=LISTED)
        lines = [
            f"{each.id}. {each.command}, for {span(tx.now - each.started_at)}" for each in overview.processes
        ]
        return "\n".join(lines) or "No background process runs."
