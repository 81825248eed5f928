"""Tools that tell about Keryx's own state: conversations, search, schedules, processes, platforms; and remembering.

What is told in a chat that others read is only what was said to these others.
"""

from collections.abc import Callable, Sequence

from keryx.domain.json_value import JsonValue
from keryx.domain.session import SessionId
from keryx.domain.toolset import MEMORY
from keryx.domain.turn import StepEffect
from keryx.errors import InvalidValue, NotFound
from keryx.store.database import Database, ReadTx, Tx
from keryx.tools.told import Offered, Told
from keryx.tools.tool import Tool, ToolFailed, Use
from keryx.transactions.command_handlers.context import ago, messages, span
from keryx.transactions.manage_memory import Kept, edit_memory, remember
from keryx.views.board import show_board
from keryx.views.memories import find_memories
from keryx.views.nodes import list_platforms, may_hear_troubles
from keryx.views.search import search
from keryx.views.sessions import list_sessions

LISTED = 10
RECALLED = 20


def state_tools(database: Database, *, troubles: Callable[[], Sequence[str]] = tuple) -> Sequence[Tool]:
    """Return the tools of this module; ``troubles`` is what does not work now, which only owners are told."""
    return [
        SearchHistory(database),
        ListSessions(database),
        ListSchedules(database),
        ListProcesses(database),
        ListPlatforms(database, troubles),
        Recall(database),
        Remember(database),
    ]


class SearchHistory(Told):
    """Finds anything said before."""

    name = "search_history"
    description = (
        "Find what was said before, in any conversation of this person, by words, phrases and filters. Each hit "
        "names its conversation by id, and its message by number, for read_session."
    )
    parameters = {"query": {"type": "string", "description": "What to look for"}}  # noqa: RUF012 - never changed

    def tell(self, tx: ReadTx, use: Use) -> str:
        """Return the newest hits with their conversations; the question that led here is none."""
        found = search(
            tx,
            use.text("query"),
            person_id=use.person_id,
            limit=LISTED,
            neighbours=0,
            audience_id=use.audience_id,
            asking=None if use.turn_id is None else (use.session_id, use.turn_id),
        )
        lines = [
            f"{_named(session.title, session.session_id)}{f' [{hit.seq}]' if hit.seq else ''}: "
            f"{hit.role or 'title'}: {hit.snippet.text}"
            for session in found.sessions
            for hit in session.hits
        ]
        return "\n".join(lines) or "\n".join(["Nothing found.", *found.nothing_because])


def _named(name: str | None, session_id: str) -> str:
    """Return a conversation's name with the id by which it is read."""
    return session_id if name is None else f"{name} ({session_id})"


class ListSessions(Told):
    """Lists conversations."""

    name = "list_sessions"
    description = "List this person's newest conversations, with their ids for read_session."
    is_private = True

    def tell(self, tx: ReadTx, use: Use) -> str:
        """Return the newest conversations, a line each."""
        page = list_sessions(tx, person_id=use.person_id, limit=LISTED)
        lines = [
            f"{number}. {_named(row.title or row.preview, row.id)}: {messages(row.message_count)}, "
            f"{ago(row.last_active_at, now=tx.now)}"
            for number, row in enumerate(page.rows, 1)
        ]
        return "\n".join(lines) or "There are no conversations yet."


class ListSchedules(Told):
    """Lists schedules."""

    name = "list_schedules"
    description = "List what is scheduled and when it comes next."
    is_private = True

    def tell(self, tx: ReadTx, use: Use) -> str:
        """Return what is scheduled, a line each."""
        board = show_board(tx, person_id=use.person_id, limit=LISTED)
        lines = [
            f"{each.schedule_id}. {each.name}: {each.rule}, next in {span(each.due_at - tx.now)}"
            for each in board.schedules
        ]
        return (
            "\n".join(lines) or "Nothing is scheduled. /schedule add every 2h | look at the mail makes one."
        )


class ListProcesses(Told):
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


class ListPlatforms(Told):
    """Lists connected platforms."""

    name = "list_platforms"
    description = "List the platforms that are connected now, and the servers of tools that do not work."

    def __init__(self, database: Database, troubles: Callable[[], Sequence[str]]) -> None:
        super().__init__(database)
        self._troubles = troubles

    def tell(self, tx: ReadTx, use: Use) -> str:
        """Return the connected accounts, a line each, and for the owner what does not work."""
        connected = list_platforms(tx) or ["No platform is connected; this terminal always is."]
        may_hear = may_hear_troubles(tx, person_id=use.person_id, audience_id=use.audience_id)
        return "\n".join([*connected, *(self._troubles() if may_hear else ())])


class Recall(Told):
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


class Remember(Offered):
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
    optional = ("instead_of",)

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
        return f"May I keep this note for later{place}? {use.text('note')!r}"
