"""The hits of a search, grouped by session, with snippets and neighbouring messages."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from keryx.clock import Micros
from keryx.core.conversations.rules.branch import Segment, owner_of
from keryx.core.conversations.rules.message import (
    PREVIEW_LENGTH,
    Message,
    decode_parts,
    preview_of,
    stored_text,
)
from keryx.core.conversations.tables import branches, messages
from keryx.core.search.rules.query import Phrase, Query
from keryx.core.search.rules.snippet import Snippet, make_snippet
from keryx.core.search.views.match_rows import Match
from keryx.core.search.views.searched_rows import SessionRow, list_first, list_near
from keryx.core.values.graphemes import cut
from keryx.store.database import ReadTx

PREVIEW_READ: Final = 200
"""Characters of a long text that a preview looks at."""


class Neighbour(NamedTuple):
    """The preview of a message right before or after a hit."""

    seq: int
    role: str
    text: str


class Hit(NamedTuple):
    """A message that matches.

    Where the session's title, name, tags or id match instead, ``seq`` is 0 and ``role`` is empty.
    """

    seq: int
    message_id: int
    role: str
    created_at: Micros
    snippet: Snippet
    before: tuple[Neighbour, ...] = ()
    after: tuple[Neighbour, ...] = ()
    on_active_branch: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHits:
    """The hits of one session, and how many they are."""

    session_id: str
    title: str | None
    count: int
    hits: tuple[Hit, ...]


def group_hits(
    tx: ReadTx, query: Query, found: Sequence[Match], *, neighbours: int
) -> tuple[SessionHits, ...]:
    """Return the hits by session; sessions and hits keep the order of ``found``."""
    reader = NeighbourReader(tx, found, reach=neighbours)
    phrases = tuple(query.positive_phrases())
    by_session: dict[str, list[Hit]] = {}
    titles: dict[str, str | None] = {}
    for match in found:
        titles[match.session.id] = match.session.title
        by_session.setdefault(match.session.id, []).append(_hit(phrases, match, reader))
    return tuple(
        SessionHits(session_id=session_id, title=titles[session_id], count=len(hits), hits=tuple(hits))
        for session_id, hits in by_session.items()
    )


def _hit(phrases: Sequence[Phrase], match: Match, neighbours: "NeighbourReader") -> Hit:
    snippet = make_snippet(phrases, match.text)
    message = match.message
    if message is None:
        return Hit(seq=0, message_id=0, role="", created_at=match.key[0], snippet=snippet)
    return Hit(
        seq=message.seq,
        message_id=message.id,
        role=message.role,
        created_at=message.created_at,
        snippet=snippet,
        before=neighbours.before(match.session, message),
        after=neighbours.after(match.session, message),
        on_active_branch=neighbours.is_on_active_branch(match.session, message),
    )


class NeighbourReader:
    """The messages around hits on the active branches of their sessions.

    Nearly always these have adjacent numbers on the same branch, and are read for all hits with one statement.
    Otherwise the path of the branch is read.
    """

    def __init__(self, tx: ReadTx, found: Sequence[Match], *, reach: int) -> None:
        self._tx = tx
        self._reach = reach
        self._paths: dict[str, list[Segment]] = {}
        places = [
            (match.session.id, match.session.active_branch_no, match.message.seq)
            for match in found
            if match.message is not None
        ]
        self._near = {
            (session_id, seq): Neighbour(seq, role, _preview(parts))
            for session_id, seq, role, parts in list_near(tx, places, reach=reach)
        }
        """By session and number; all are on active branches."""

    def is_on_active_branch(self, session: SessionRow, message: Message) -> bool:
        """Return whether the message is on the session's active branch."""
        if message.branch_no == session.active_branch_no:
            return True
        owner = owner_of(self._path(session), message.seq)
        return owner is not None and (owner.session_id, owner.branch_no) == (session.id, message.branch_no)

    def before(self, session: SessionRow, message: Message) -> tuple[Neighbour, ...]:
        """Return the messages right before, oldest first."""
        near = self._adjacent(session, message, range(max(1, message.seq - self._reach), message.seq))
        return self._read_back(session, message.seq) if near is None else near

    def after(self, session: SessionRow, message: Message) -> tuple[Neighbour, ...]:
        """Return the messages right after, oldest first."""
        near = self._adjacent(session, message, range(message.seq + 1, message.seq + self._reach + 1))
        return self._read_on(session, message.seq) if near is None else near

    def _adjacent(self, session: SessionRow, message: Message, seqs: range) -> tuple[Neighbour, ...] | None:
        """Return the messages with these numbers, or None if some of them are not on the message's branch."""
        if message.branch_no != session.active_branch_no:
            return None
        near = self._near
        try:
            return tuple([near[session.id, seq] for seq in seqs])
        except KeyError:
            return None

    def _read_back(self, session: SessionRow, seq: int) -> tuple[Neighbour, ...]:
        found: list[Message] = []
        for segment in reversed(self._path(session)):
            last = min(seq - 1, segment.last_seq)
            if len(found) < self._reach and segment.first_seq <= last:
                before = replace(segment, last_seq=last)
                found += messages.list_last(self._tx, before, limit=self._reach - len(found))
        return tuple(Neighbour(each.seq, each.role, _preview(each.body)) for each in reversed(found))

    def _read_on(self, session: SessionRow, seq: int) -> tuple[Neighbour, ...]:
        found: list[Message] = []
        for segment in self._path(session):
            last = segment.last_seq
            first = max(seq + 1, segment.first_seq)
            if len(found) < self._reach and first <= last:
                limit = self._reach - len(found)
                found += list_first(self._tx, segment, first_seq=first, last_seq=last, limit=limit)
        return tuple(Neighbour(each.seq, each.role, _preview(each.body)) for each in found)

    def _path(self, session: SessionRow) -> list[Segment]:
        if session.id not in self._paths:
            self._paths[session.id] = branches.list_path(
                self._tx, session_id=session.id, branch_no=session.active_branch_no
            )
        return self._paths[session.id]


def _preview(stored: str) -> str:
    """Return the same as ``preview_of``, but read only the beginning of a long text."""
    if stored.startswith('"'):
        text = stored_text(stored)
        line = " ".join(text[:PREVIEW_READ].split())
        if line and (len(line) > PREVIEW_LENGTH or len(text) <= PREVIEW_READ):
            return cut(line, PREVIEW_LENGTH)
    return preview_of(decode_parts(stored))
