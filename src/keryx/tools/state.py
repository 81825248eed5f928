"""Tools that tell about Keryx's own state: conversations, search, schedules, processes, platforms; and remembering.

What is told in a chat that others read is only what was said to these others.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from keryx.agents.agent import ToolOffer
from keryx.domain.json_value import JsonValue
from keryx.domain.session import SessionId
from keryx.domain.toolset import MEMORY, STATE
from keryx.domain.turn import StepEffect
from keryx.errors import InvalidValue, NotFound
from keryx.store.database import Database, ReadTx, Tx
from keryx.tools.tool import Tool, ToolFailed, Use
from keryx.transactions.command_handlers.context import ago, span
from keryx.transactions.manage_memory import Kept, edit_memory, remember
from keryx.views.board import show_board
from keryx.views.memories import find_memories
from keryx.views.nodes import list_platforms
from keryx.views.search import search
from keryx.views.sessions import list_sessions

LISTED = 10
RECALLED = 20
PRIVATE = "That is told only in a direct message: others read this chat."


def state_tools(database: Database) -> Sequence[Tool]:
    """Return the tools of this module."""
    return [
        SearchHistory(database),
        ListSessions(database),
        ListSchedules(database),
        ListProcesses(database),
        ListPlatforms(database),
        Recall(database),
        Remember(database),
    ]


class _Stated:
    """A tool whose class states what the agent is told of it."""

    name: str
    description: str
    effect: StepEffect = "pure"
    toolset: str = STATE
    parameters: dict[str, JsonValue] = {}  # noqa: RUF012 - each tool states its own
    optional: frozenset[str] = frozenset()
    """Which of them may be left out."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def offer(self) -> ToolOffer:
        """What the agent is told of it."""
        schema: dict[str, JsonValue] = {
            "type": "object",
            "properties": self.parameters,
            "required": [name for name in self.parameters if name not in self.optional],
            "additionalProperties": False,
        }
        return ToolOffer(
            name=self.name,
            description=self.description,
            parameters=schema,
            effect=self.effect,
            toolset=self.toolset,
        )

    def question(self, use: Use) -> str:  # noqa: ARG002 - the same whatever it is used for
        """Return what a person is asked before, if anybody ever is."""
        return f"May I use {self.name}?"


class _Told(_Stated, ABC):
    """A tool that reads and tells; it changes nothing and may run any number of times."""

    is_private = False
    """Whether it tells what only the person may read."""

    async def run(self, use: Use) -> JsonValue:
        """Read what is asked for and return it as lines of text."""
        if self.is_private and use.audience_id is not None:
            raise ToolFailed(PRIVATE)
        return await self._database.read(lambda tx: self.tell(tx, use))

    @abstractmethod
    def tell(self, tx: ReadTx, use: Use) -> str:
        """Return what is asked for."""


class SearchHistory(_Told):
    """Finds anything said before."""

    name = "search_history"
    description = (
        "Find what was said before, in any conversation of this person, by words, phrases and filters."
    )
    parameters = {"query": {"type": "string", "description": "What to look for"}}  # noqa: RUF012 - never changed

    def tell(self, tx: ReadTx, use: Use) -> str:
        """Return the newest hits with their conversations."""
        found = search(
            tx,
            use.text("query"),
            person_id=use.person_id,
            limit=LISTED,
            neighbours=0,
            audience_id=use.audience_id,
        )
        lines = [
            f"{session.title or session.session_id}: {hit.role or 'title'}: {hit.snippet.text}"
            for session in found.sessions
            for hit in session.hits
        ]
        return "\n".join(lines) or "\n".join(["Nothing found.", *found.nothing_because])


class ListSessions(_Told):
    """Lists conversations."""

    name = "list_sessions"
    description = "List this person's newest conversations."
    is_private = True

    def tell(self, tx: ReadTx, use: Use) -> str:
        """Return the newest conversations, a line each."""
        page = list_sessions(tx, person_id=use.person_id, limit=LISTED)
        lines = [
            f"{row.title or row.preview or row.id} ({row.message_count} messages, "
            f"{ago(row.last_active_at, now=tx.now)})"
            for row in page.rows
        ]
        return "\n".join(lines) or "There are no conversations yet."


class ListSchedules(_Told):
    """Lists schedules."""

    name = "list_schedules"
    description = "List what is scheduled and when it comes next."
    is_private = True

    def tell(self, tx: ReadTx, use: Use) -> str:
        """Return what is scheduled, a line each."""
        board = show_board(tx, person_id=use.person_id, limit=LISTED)
        lines = [
            f"{each.name}: {each.rule}, next in {span(each.due_at - tx.now)}" for each in board.schedules
        ]
        return (
            "\n".join(lines) or "Nothing is scheduled. /schedule add every 2h | look at the mail makes one."
        )


class ListProcesses(_Told):
    """Lists background processes."""

    name = "list_processes"
    description = "List the background processes that run."
    is_private = True

    def tell(self, tx: ReadTx, use: Use) -> str:
        """Return what runs, a line each."""
        board = show_board(tx, person_id=use.person_id, limit=LISTED)
        lines = [
            f"{each.id}. {each.command}, for {span(tx.now - each.started_at)}" for each in board.processes
        ]
        return "\n".join(lines) or "No background process runs."


class ListPlatforms(_Told):
    """Lists connected platforms."""

    name = "list_platforms"
    description = "List the platforms that are connected now."

    def tell(self, tx: ReadTx, use: Use) -> str:  # noqa: ARG002 - the same for everybody
        """Return the connected accounts, a line each."""
        return "\n".join(list_platforms(tx)) or "No platform is connected; this terminal always is."


class Recall(_Told):
    """Finds notes that were kept."""

    name = "recall"
    description = "Find notes that were kept for this chat, by words; each with its number."
    toolset = MEMORY
    parameters = {"query": {"type": "string", "description": "Words of the note"}}  # noqa: RUF012 - never changed

    def tell(self, tx: ReadTx, use: Use) -> str:
        """Return the notes that have the words, best first, a line each."""
        words = use.text("query")
        found = find_memories(tx, use.session_id, person_id=use.person_id, words=words, limit=RECALLED)
        lines = [f"{note.id}. {note.text} ({ago(note.created_at, now=tx.now)})" for note in found]
        return "\n".join(lines) or "Nothing is remembered about that."


class Remember(_Stated):
    """Keeps a note beyond this conversation, if the person allows it."""

    name = "remember"
    description = (
        "Keep a short note about this person for later conversations; "
        "with instead_of, in place of an older one that is no longer true."
    )
    effect: StepEffect = "ask"
    toolset = MEMORY
    parameters = {  # noqa: RUF012 - never changed
        "note": {"type": "string", "description": "What to keep, in one sentence"},
        "instead_of": {"type": "integer", "description": "The number that recall gave the older note"},
    }
    optional = frozenset({"instead_of"})

    async def run(self, use: Use) -> JsonValue:
        """Keep the note and tell so."""
        note, old, session_id = use.text("note"), use.arguments.get("instead_of"), SessionId(use.session_id)
        if old is not None and type(old) is not int:
            raise ToolFailed("Give 'instead_of' as a whole number, or leave it out.")

        def keep(tx: Tx) -> Kept:
            if old is None:
                return remember(tx, session_id, note, person_id=use.person_id)
            return edit_memory(tx, session_id, old, note, person_id=use.person_id)

        try:
            kept = await self._database.write(keep)
        except (InvalidValue, NotFound) as error:
            raise ToolFailed(str(error)) from error
        return "Kept." if kept.is_new else f"It is kept already, as note {kept.memory_id}."

    def question(self, use: Use) -> str:
        """Return what the person is asked."""
        old = use.arguments.get("instead_of")
        place = "" if old is None else f" in place of note {old}"
        return f"May I keep this note for later{place}? {use.text('note')!r} Answer /approve or /deny."
