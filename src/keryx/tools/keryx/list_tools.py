"""``list_sessions``, ``list_schedules``, ``list_processes`` and ``list_platforms``: short lists for the person."""

from collections.abc import Callable, Sequence

from keryx.core.accounts.views import list_platforms
from keryx.core.conversations.transactions.command_context import ago, messages, span
from keryx.core.conversations.views.session_list import list_sessions
from keryx.core.turns.views.overview import show_overview
from keryx.core.upkeep.views.nodes import may_hear_troubles
from keryx.store.database import Database, ReadTx
from keryx.tools.base_tool import Arguments
from keryx.tools.keryx.store_reader import LISTED, StoreReader, session_name
from keryx.tools.tool import ToolCall


class ListSessions(StoreReader):
    """Lists conversations."""

    name = "list_sessions"
    description = "List this person's newest conversations, with their ids for read_session."
    is_private = True

    def read(self, tx: ReadTx, call: ToolCall, given: Arguments) -> str:  # noqa: ARG002 - it takes none
        """Return a line for each conversation."""
        page = list_sessions(tx, person_id=call.person_id, limit=LISTED)
        lines = [
            f"{number}. {session_name(row.title or row.preview, row.id)}: {messages(row.message_count)}, "
            f"{ago(row.last_active_at, now=tx.now)}"
            for number, row in enumerate(page.rows, 1)
        ]
        return "\n".join(lines) or "There are no conversations yet."


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


class ListPlatforms(StoreReader):
    """Lists connected platforms."""

    name = "list_platforms"
    description = "List the platforms that are connected now, and the servers of tools that do not work."

    def __init__(self, database: Database, troubles: Callable[[], Sequence[str]]) -> None:
        super().__init__(database)
        self._troubles = troubles

    def read(self, tx: ReadTx, call: ToolCall, given: Arguments) -> str:  # noqa: ARG002 - it takes none
        """Return a line for each connected account and, for the owner, for each server that does not work."""
        connected = list_platforms(tx) or ["No platform is connected; this terminal always is."]
        may_hear = may_hear_troubles(tx, person_id=call.person_id, audience_id=call.audience_id)
        return "\n".join([*connected, *(self._troubles() if may_hear else ())])
