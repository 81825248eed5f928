"""``search_history``: find earlier messages; in a chat that other people read, only in conversations with them."""

from keryx.core.search.views.search import search
from keryx.store.database import ReadTx
from keryx.tools.base_tool import Arguments, Parameter
from keryx.tools.keryx.store_reader import LISTED, StoreReader, session_name
from keryx.tools.tool import ToolCall


class SearchHistory(StoreReader):
    """Finds messages of any conversation of the person."""

    name = "search_history"
    description = (
        "Find what was said before, in any conversation of this person, by words, phrases and filters. Each hit "
        "names its conversation by id, and its message by number, for read_session."
    )
    parameters = {  # noqa: RUF012 - never changed
        "query": Parameter(help="What to look for", required=True)
    }

    def read(self, tx: ReadTx, call: ToolCall, given: Arguments) -> str:
        """Return the newest hits with their conversations, without the turn that searches."""
        found = search(
            tx,
            given.text("query"),
            person_id=call.person_id,
            limit=LISTED,
            neighbours=0,
            audience_id=call.audience_id,
            asking=None if call.turn_id is None else (call.session_id, call.turn_id),
        )
        lines = [
            f"{session_name(session.title, session.session_id)}{f' [{hit.seq}]' if hit.seq else ''}: "
            f"{hit.role or 'title'}: {hit.snippet.text}"
            for session in found.sessions
            for hit in session.hits
        ]
        return "\n".join(lines) or "\n".join(["Nothing found.", *found.nothing_because])
