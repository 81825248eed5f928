"""Everything a program may look at: lists, transcripts, search, the feed, usage."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TypedDict, Unpack

from keryx.clock import Micros
from keryx.domain.branch import Siblings
from keryx.domain.event import START, Event, Position
from keryx.domain.message import Message
from keryx.domain.openai_chat import ChatMessage
from keryx.domain.prompt import ContextFacts
from keryx.domain.zone import micros_of
from keryx.errors import InvalidValue, StoreCorrupt
from keryx.library.acting import Acting
from keryx.transactions.index_messages import clear_index
from keryx.views import board, context, feed, search, sessions, transcript, usage
from keryx.views.search import Order, SearchResult
from keryx.views.search_verify import verify_index
from keryx.views.sessions import Count, Page, Session, SessionFilter

_MICROSECOND = timedelta(microseconds=1)


class ListFilter(TypedDict, total=False):
    """What a list of sessions is narrowed to."""

    source: str | None
    active_within: timedelta | None
    project: str | None
    tag: str | None
    archived: bool


class SearchFilter(TypedDict, total=False):
    """How a search is narrowed, ordered and shown."""

    session_id: str | None
    source: str | None
    order: Order
    neighbours: int


class Reading(Acting):
    """The calls that change nothing."""

    async def get_session(self, session_id: str) -> Session:
        """Return a session; raises ``NotFound`` for one that is not there or not the person's to see."""
        wanted = self._id(session_id)
        return await self._database.read(
            lambda tx: sessions.get_session(tx, wanted, person_id=self._person_id)
        )

    async def list_sessions(
        self, *, limit: int = 50, after: str | None = None, **where: Unpack[ListFilter]
    ) -> Page:
        """Return a page of sessions, pinned first, then by last activity; ``after`` is the last page's ``next``."""
        chosen = _session_filter(where)
        return await self._database.read(
            lambda tx: sessions.list_sessions(
                tx, person_id=self._person_id, limit=limit, after=after, where=chosen
            )
        )

    async def count(self, *, source: str | None = None) -> Count:
        """Count sessions, and the messages kept in them."""
        return await self._database.read(
            lambda tx: sessions.count(tx, person_id=self._person_id, source=source)
        )

    async def transcript(
        self, session_id: str, *, last: int | None = 50, before: int | None = None
    ) -> list[Message]:
        """Return the last messages of the active branch, oldest first; ``before=seq`` pages back, None is all."""
        wanted, person_id = self._id(session_id), self._person_id
        return await self._database.read(
            lambda tx: transcript.list_transcript(tx, wanted, person_id=person_id, last=last, before=before)
        )

    async def conversation(self, session_id: str) -> list[ChatMessage]:
        """Return the active branch in OpenAI's chat format, summaries in place of what they cover."""
        wanted = self._id(session_id)
        return await self._database.read(
            lambda tx: transcript.conversation(tx, wanted, person_id=self._person_id)
        )

    async def versions(self, session_id: str) -> Mapping[int, Siblings]:
        """Return after which shown messages there are several versions; key 0 is for the first message."""
        wanted = self._id(session_id)
        return await self._database.read(
            lambda tx: transcript.versions(tx, wanted, person_id=self._person_id)
        )

    async def search(
        self, text: str, *, limit: int = 20, after: str | None = None, **how: Unpack[SearchFilter]
    ) -> SearchResult:
        """Return what answers ``text``, grouped by session; never raises for what the text says."""
        if how.get("session_id") is not None:
            parsed_id = self._id(str(how["session_id"]))
            how["session_id"] = parsed_id
        try:
            return await self._search(text, limit, after, how)
        except StoreCorrupt:
            # Perhaps only the index is damaged, which can be made again; if not, the second try says so.
            await self._database.discard_index()
            self._indexer.note()
            return await self._search(text, limit, after, how)

    async def _search(self, text: str, limit: int, after: str | None, how: SearchFilter) -> SearchResult:
        return await self._database.read(
            lambda tx: search.search(tx, text, person_id=self._person_id, limit=limit, after=after, **how)
        )

    async def wait_indexed(self) -> None:
        """Return once everything written before is in the index; searches find it without that, too."""
        await self._indexer.caught_up()

    async def rebuild_index(self) -> None:
        """Throw the index away and make it again from the messages."""
        await self._database.write_index(clear_index)
        await self._indexer.caught_up()

    async def verify_index(self) -> tuple[str, ...]:
        """Compare the index with the messages; return what is wrong with it, in sentences, or nothing."""
        return await self._database.read(verify_index)

    async def context(self, session_id: str, *, platforms: frozenset[str] = frozenset()) -> ContextFacts:
        """Return what the agent is told about where it is, as data; ``keryx.domain.prompt`` makes its text."""
        wanted = self._id(session_id)
        return await self._database.read(
            lambda tx: context.show_context(tx, wanted, person_id=self._person_id, platforms=platforms)
        )

    async def board(self) -> board.Board:
        """Return what is going on: turns, the queue, questions, processes, the next schedules."""
        return await self._database.read(lambda tx: board.show_board(tx, person_id=self._person_id))

    async def usage(
        self, *, since: datetime, until: datetime, zone: str = "UTC", session_id: str | None = None
    ) -> usage.Usage:
        """Return tokens, cost and tool calls between two aware times, by day (of ``zone``), model and session."""
        wanted = None if session_id is None else self._id(session_id)
        first, end = _instant(since), _instant(until)
        return await self._database.read(
            lambda tx: usage.show_usage(
                tx, person_id=self._person_id, since=first, until=end, zone=zone, session_id=wanted
            )
        )

    async def feed(self, after: str | Position | None = None, *, limit: int = 1_000) -> list[Event]:
        """Return what happened after a position (None: from the start), oldest first."""
        position = START if after is None else after if isinstance(after, Position) else Position.parse(after)
        return await self._database.read(
            lambda tx: feed.list_after(tx, person_id=self._person_id, after=position, limit=limit)
        )


def _session_filter(where: ListFilter) -> SessionFilter:
    within = where.get("active_within")
    return SessionFilter(
        source=where.get("source"),
        active_within=None if within is None else within // _MICROSECOND,
        project=where.get("project"),
        tag=where.get("tag"),
        archived=where.get("archived", False),
    )


def _instant(moment: datetime) -> Micros:
    if moment.tzinfo is None:
        raise InvalidValue(f"time {moment.isoformat()}: say in which time zone it is")
    return micros_of(moment)
