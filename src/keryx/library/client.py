"""What a program can do with an open store: the calls of ``Keryx``.

Each call parses its arguments, then runs one view or one transaction of a subject. A call that writes returns when
the change is durable, and notifies the indexer.
"""

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import lru_cache, partial
from typing import Concatenate, Final, ParamSpec, TypeVar, Unpack

from keryx.config import Settings
from keryx.core.context.rules.openai_chat import ChatMessage
from keryx.core.context.rules.prompt import ContextFacts
from keryx.core.context.views import prompt_facts, usage
from keryx.core.context.views.usage import Usage
from keryx.core.conversations.rules.branch import Siblings
from keryx.core.conversations.rules.event import START, Event, Position
from keryx.core.conversations.rules.message import Message, NewMessage, Part, Role, TextPart
from keryx.core.conversations.rules.session import SessionId, parse_close_reason, parse_session_id
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.transactions import branch_session, change_session
from keryx.core.conversations.transactions.append_message import Appended, append_message
from keryx.core.conversations.transactions.branch_session import Branched, NothingToRedo, NothingToUndo
from keryx.core.conversations.transactions.fork_session import fork_session
from keryx.core.conversations.transactions.import_session import import_session
from keryx.core.conversations.transactions.program_sessions import (
    SessionOptions,
    create_session,
    ensure_session,
)
from keryx.core.conversations.transactions.session_guard import Actor
from keryx.core.conversations.views import feed, session_list, transcript
from keryx.core.conversations.views.session_list import Session, SessionCount, SessionPage, get_session
from keryx.core.people.rules.person import Person
from keryx.core.search.indexing.indexer import Indexer
from keryx.core.search.transactions.index_messages import clear_index
from keryx.core.search.views.search import SearchResult, search
from keryx.core.search.views.verify_index import verify_index
from keryx.core.turns.transactions.flush_session import give_way
from keryx.core.turns.views import overview
from keryx.core.turns.views.overview import Overview
from keryx.errors import StoreCorrupt
from keryx.ids import Ids
from keryx.library.archive import export_lines, read_archives
from keryx.library.filters import ListFilter, SearchFilter, micros_from, session_filter
from keryx.library.messages import MessageDetails, ToolCall, new_message
from keryx.store.database import Database, ReadTx, Tx

P = ParamSpec("P")
T = TypeVar("T")

LIBRARY: Final = "library"
"""The chat that a program's new sessions belong to."""

parsed: Final = lru_cache(maxsize=4_096)(parse_session_id)
"""Parse a session id, each of the few ids in use once."""


class Keryx:
    """An open store, read and changed on behalf of one person; any number of tasks may use it at once."""

    def __init__(
        self, database: Database, person: Person, *, ids: Ids, indexer: Indexer, settings: Settings
    ) -> None:
        self._database = database
        self._person = person
        self._person_id = person.id
        self._actor = Actor(person_id=person.id, give_way=give_way)
        self._ids = ids
        self._indexer = indexer
        self._settings = settings

    @property
    def person(self) -> Person:
        """The person on whose behalf the program reads and writes."""
        return self._person

    # Sessions

    async def create_session(
        self,
        *,
        platform: str = "local",
        title: str | None = None,
        project: str | None = None,
        workspace: str | None = None,
        model: str | None = None,
    ) -> Session:
        """Open a session that no chat points to. A project that does not exist is created."""
        source = Source(platform=platform, chat_id=LIBRARY, chat_type="dm")
        options = SessionOptions(title=title, project=project, workspace=workspace, model=model)

        def work(tx: Tx) -> Session:
            made = create_session(tx, self._ids, source=source, person=self._person, options=options)
            return get_session(tx, made, person_id=self._person_id)

        return await self._changed(work)

    async def session_for(self, source: Source) -> Session:
        """Return the current session of a chat, opened if there is none: the same source, the same session."""

        def work(tx: Tx) -> Session:
            found = ensure_session(tx, self._ids, source=source, person=self._person, settings=self._settings)
            return get_session(tx, found, person_id=self._person_id)

        return await self._changed(work)

    async def get_session(self, session_id: str) -> Session:
        """Return a session; raise ``NotFound`` if it does not exist or the person may not see it."""
        return await self._view(get_session, session_id, person_id=self._person_id)

    async def list_sessions(
        self, *, limit: int = 50, after: str | None = None, **where: Unpack[ListFilter]
    ) -> SessionPage:
        """Return a page of sessions, pinned first, then by last activity; ``after`` is the last page's ``next``."""
        chosen, person_id = session_filter(where), self._person_id
        return await self._database.read(
            lambda tx: session_list.list_sessions(
                tx, person_id=person_id, limit=limit, after=after, where=chosen
            )
        )

    async def count(self, *, source: str | None = None) -> SessionCount:
        """Count the sessions of one platform or of all, and the messages kept in them."""
        return await self._database.read(
            lambda tx: session_list.count(tx, person_id=self._person_id, source=source)
        )

    async def rename(self, session_id: str, title: str) -> bool:
        """Give a session a title that only a person overwrites; return whether the title changed."""
        return await self._change(change_session.rename, session_id, title, person_id=self._person_id)

    async def pin(self, session_id: str, *, pinned: bool = True) -> bool:
        """Keep a session at the top of lists, or no longer; return whether anything changed."""
        return await self._change(change_session.pin, session_id, person_id=self._person_id, pinned=pinned)

    async def archive(self, session_id: str, *, archived: bool = True) -> bool:
        """Take a session out of the lists, or put it back; return whether anything changed."""
        return await self._change(
            change_session.archive, session_id, person_id=self._person_id, archived=archived
        )

    async def tag(self, session_id: str, tag: str) -> bool:
        """Put a tag on a session; return whether the tag is new there."""
        return await self._change(change_session.tag, session_id, tag, person_id=self._person_id)

    async def untag(self, session_id: str, tag: str) -> bool:
        """Remove a tag from a session; return whether the session had the tag."""
        return await self._change(change_session.untag, session_id, tag, person_id=self._person_id)

    async def close_session(self, session_id: str, *, reason: str = "done") -> bool:
        """Close a session, so that no chat points to it any more; return whether it was open."""
        why = parse_close_reason(reason)
        return await self._change(change_session.close, session_id, person_id=self._person_id, reason=why)

    async def delete(self, session_id: str) -> bool:
        """Put a session into the bin, where it stays 30 days; return False if it was there already."""
        return await self._change(change_session.delete, session_id, actor=self._actor)

    async def restore(self, session_id: str) -> bool:
        """Take a session out of the bin; return whether it was there."""
        return await self._change(change_session.restore, session_id, person_id=self._person_id)

    # Messages

    async def append(
        self,
        session_id: str,
        *,
        role: Role,
        text: str | None = None,
        parts: Sequence[Part] = (),
        tool_calls: Sequence[ToolCall] = (),
        **details: Unpack[MessageDetails],
    ) -> Appended:
        """Append a message to the active branch; raise ``SessionBusy`` while another holder's turn runs.

        The result of a tool call is ``role="tool"`` with ``tool_call_id``, and with the output as ``text``.
        """
        message = new_message(role, text, parts, tool_calls, **details)
        wanted, person_id = parsed(session_id), self._person_id
        return await self._changed(lambda tx: append_message(tx, wanted, message, person_id=person_id))

    async def append_all(self, session_id: str, messages: Sequence[NewMessage]) -> list[Appended]:
        """Append several messages, all of them or none."""
        wanted = parsed(session_id)
        appended = await self._database.write(
            lambda tx: [append_message(tx, wanted, each, person_id=self._person_id) for each in messages]
        )
        self._indexer.note(len(appended))
        return appended

    async def transcript(
        self, session_id: str, *, last: int | None = 50, before: int | None = None
    ) -> list[Message]:
        """Return the last messages of the active branch, oldest first; ``last=None`` returns all of them.

        ``before`` pages back: only messages with a smaller ``seq`` are returned.
        """
        return await self._view(
            transcript.list_transcript, session_id, person_id=self._person_id, last=last, before=before
        )

    async def conversation(self, session_id: str) -> list[ChatMessage]:
        """Return the active branch in OpenAI's chat format, with summaries in place of what they cover."""
        return await self._view(transcript.conversation, session_id, person_id=self._person_id)

    # Branches

    async def undo(self, session_id: str, *, turns: int = 1) -> Branched | NothingToUndo:
        """Take back the last turns by showing a branch that ends before them; nothing is deleted."""
        return await self._change(branch_session.undo, session_id, actor=self._actor, turns=turns)

    async def redo(self, session_id: str) -> Branched | NothingToRedo:
        """Show what was shown before the last undo, retry or edit."""
        return await self._change(branch_session.redo, session_id, actor=self._actor)

    async def edit(self, session_id: str, seq: int, *, text: str) -> Branched:
        """Replace a message that is shown: open a branch that ends before it and append the new text."""
        parts = (TextPart(text=text),)
        return await self._change(branch_session.edit, session_id, seq, parts, actor=self._actor)

    async def versions(self, session_id: str) -> Mapping[int, Siblings]:
        """Return the messages that several versions follow, with those versions; key 0 is for the first message."""
        return await self._view(transcript.versions, session_id, person_id=self._person_id)

    async def switch_branch(self, session_id: str, no: int) -> Branched:
        """Show another branch, one of those that ``versions`` names."""
        return await self._change(branch_session.switch_branch, session_id, no, actor=self._actor)

    async def fork(self, session_id: str, *, at: int | None = None, title: str | None = None) -> Session:
        """Open a session that continues another one from message ``at`` (None: the last), without copying it."""

        def work(tx: Tx, wanted: SessionId) -> Session:
            made = fork_session(tx, self._ids, wanted, person=self._person, at=at, title=title)
            return get_session(tx, made, person_id=self._person_id)

        return await self._change(work, session_id)

    async def pop(self, session_id: str) -> Message | None:
        """Take back the last message and return it, or None if nothing is shown; ``redo`` brings it back."""
        return await self._change(branch_session.pop_message, session_id, actor=self._actor)

    async def clear(self, session_id: str) -> None:
        """Show an empty transcript; ``redo`` brings back what was shown."""
        await self._change(branch_session.clear_messages, session_id, actor=self._actor)

    # Search

    async def search(
        self, text: str, *, limit: int = 20, after: str | None = None, **how: Unpack[SearchFilter]
    ) -> SearchResult:
        """Return the messages that match ``text``, grouped by session. No text is an error."""
        if (session_id := how.get("session_id")) is not None:
            how["session_id"] = parsed(session_id)

        def find(tx: ReadTx) -> SearchResult:
            return search(tx, text, person_id=self._person_id, limit=limit, after=after, **how)

        try:
            return await self._database.read(find)
        except StoreCorrupt:
            # Perhaps only the index is damaged, which can be built again. If not, the second try fails, too.
            await self._database.discard_index()
            self._indexer.note()
            return await self._database.read(find)

    async def wait_indexed(self) -> None:
        """Return once the index holds everything written before; a search finds newer messages all the same."""
        await self._indexer.caught_up()

    async def rebuild_index(self) -> None:
        """Discard the index and build it again from the messages."""
        await self._database.write_index(clear_index)
        await self._indexer.caught_up()

    async def verify_index(self) -> tuple[str, ...]:
        """Compare the index with the messages; return each difference as a sentence."""
        return await self._database.read(verify_index)

    # Activity

    async def feed(self, after: str | Position | None = None, *, limit: int = 1_000) -> list[Event]:
        """Return the events after a position (None: from the start), oldest first."""
        position = START if after is None else after if isinstance(after, Position) else Position.parse(after)
        return await self._database.read(
            lambda tx: feed.list_after(tx, person_id=self._person_id, after=position, limit=limit)
        )

    async def overview(self) -> Overview:
        """Return the running turns, the queue, open questions, processes and the next schedules."""
        return await self._database.read(lambda tx: overview.show_overview(tx, person_id=self._person_id))

    async def usage(
        self, *, since: datetime, until: datetime, zone: str = "UTC", session_id: str | None = None
    ) -> Usage:
        """Return tokens, cost and tool calls between two aware times, by day (of ``zone``), model and session."""
        wanted = None if session_id is None else parsed(session_id)
        first, end = micros_from(since), micros_from(until)
        return await self._database.read(
            lambda tx: usage.show_usage(
                tx, person_id=self._person_id, since=first, until=end, zone=zone, session_id=wanted
            )
        )

    async def context(self, session_id: str, *, platforms: frozenset[str] = frozenset()) -> ContextFacts:
        """Return the facts that the agent gets about the chat of a session."""
        return await self._view(
            prompt_facts.show_context, session_id, person_id=self._person_id, platforms=platforms
        )

    # Export and import

    def export(self, session_id: str) -> AsyncIterator[str]:
        """Yield a session as lines of JSON without line ends, lossless; ``import_lines`` is the inverse."""
        return export_lines(self._database, session_id, person_id=self._person_id)

    async def import_lines(self, lines: Iterable[str] | AsyncIterable[str]) -> list[SessionId]:
        """Import exported sessions, each whole or not at all, and return their ids.

        A session keeps its id where that is free. Raises ``InvalidValue`` at the first bad line; the sessions before
        it are imported.
        """
        imported: list[SessionId] = []
        async with aclosing(read_archives(lines)) as archives:
            async for archive in archives:
                work = partial(import_session, ids=self._ids, archive=archive, owner=self._person)
                imported.append(await self._database.write(work))
                self._indexer.note(len(archive.messages) + 1)
        return imported

    async def _view(
        self,
        view: Callable[Concatenate[ReadTx, SessionId, P], T],
        session_id: str,
        *args: P.args,
        **named: P.kwargs,
    ) -> T:
        wanted = parsed(session_id)
        return await self._database.read(lambda tx: view(tx, wanted, *args, **named))

    async def _change(
        self,
        change: Callable[Concatenate[Tx, SessionId, P], T],
        session_id: str,
        *args: P.args,
        **named: P.kwargs,
    ) -> T:
        wanted = parsed(session_id)
        return await self._changed(lambda tx: change(tx, wanted, *args, **named))

    async def _changed(self, work: Callable[[Tx], T]) -> T:
        result = await self._database.write(work)
        self._indexer.note()
        return result
