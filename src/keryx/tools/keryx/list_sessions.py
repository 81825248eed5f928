"""``list_sessions``: list the person's newest conversations."""

from keryx.core.conversations.transactions.command_context import ago, messages
from keryx.core.conversations.views.session_list import list_sessions
from keryx.store.database import ReadTx
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
