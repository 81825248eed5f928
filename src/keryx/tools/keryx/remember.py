"""``remember``: keep a note about the person, if the person allows it."""

from keryx.core.context.transactions.manage_memory import NoteKept, edit_memory, remember
from keryx.core.conversations.rules.session import SessionId
from keryx.core.people.rules.toolset import MEMORY
from keryx.core.values.json_value import JsonValue
from keryx.core.values.turn_states import StepEffect
from keryx.store.database import Database, Tx
from keryx.tools.base_tool import Arguments, BaseTool, Parameter
from keryx.tools.tool import ToolCall


class Remember(BaseTool):
    """Keeps a note, or replaces an older one."""

    name = "remember"
    description = (
        "Keep a short note about this person for later conversations; "
        "with instead_of, in place of an older one that is no longer true."
    )
    effect: StepEffect = "ask"
    toolset = MEMORY
    parameters = {  # noqa: RUF012 - never changed
        "note": Parameter(help="What to keep, in one sentence", required=True),
        "instead_of": Parameter(kind="integer", help="The number that recall gave the older note"),
    }

    def __init__(self, database: Database) -> None:
        self._database = database

    async def work(self, call: ToolCall, given: Arguments) -> JsonValue:
        """Keep the note and confirm it."""
        note, older = given.text("note"), given.whole_or_none("instead_of")
        session_id = SessionId(call.session_id)

        def keep(tx: Tx) -> NoteKept:
            if older is None:
                return remember(tx, session_id, note, person_id=call.person_id)
            return edit_memory(tx, session_id, older, note, person_id=call.person_id)

        kept = await self._database.write(keep)
        return "Kept." if kept.is_new else f"It is kept already, as note {kept.memory_id}."

    def question(self, call: ToolCall) -> str:
        """Return the question to the person, with the note."""
        given = self.arguments(call)
        older = given.whole_or_none("instead_of")
        place = "" if older is None else f" in place of note {older}"
        return f"May I keep this note for later{place}? {given.text('note')!r}"
