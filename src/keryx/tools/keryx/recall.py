"""``recall``: find the notes that ``remember`` kept."""

from typing import Final

from keryx.core.context.views.prompt_facts import find_memories
from keryx.core.conversations.transactions.command_context import ago
from keryx.core.people.rules.toolset import MEMORY
from keryx.store.database import ReadTx
from keryx.tools.base_tool import Arguments, Parameter
from keryx.tools.keryx.store_reader import StoreReader
from keryx.tools.tool import ToolCall

RECALLED: Final = 20


class Recall(StoreReader):
    """Finds notes by their words."""

    name = "recall"
    description = "Find notes that were kept for this chat, by words; each with its number."
    toolset = MEMORY
    parameters = {  # noqa: RUF012 - never changed
        "query": Parameter(help="Words of the note", required=True)
    }

    def read(self, tx: ReadTx, call: ToolCall, given: Arguments) -> str:
        """Return a line for each note that has the words, the best first."""
        words = given.text("query")
        found = find_memories(tx, call.session_id, person_id=call.person_id, words=words, limit=RECALLED)
        lines = [f"{note.id}. {note.text} ({ago(note.created_at, now=tx.now)})" for note in found]
        return "\n".join(lines) or "Nothing is remembered about that."
