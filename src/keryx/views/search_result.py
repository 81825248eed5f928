"""What a search shows of what it found: snippets, neighbours, and hits grouped by session."""

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from keryx.clock import Micros
from keryx.domain.branch import Segment, owner_of
from keryx.domain.graphemes import cut, safe_end
from keryx.domain.message import PREVIEW_LENGTH, decode_parts, preview_of, stored_text
from keryx.domain.search_match import Text, highlights, window
from keryx.domain.search_query import Query, Words
from keryx.domain.tokens import begin_of, normal, spans, wide
from keryx.store.database import ReadTx
from keryx.store.tables import branches, messages, search
from keryx.store.tables.search import MessageRow, SessionRow
from keryx.values import dataclass
from keryx.views.search_scope import Match

SNIPPET_LENGTH: Final = 160
LEAD_WORDS: Final = 6
"""Words shown before the first highlight, where there are so many."""
WINDOW_WORDS: Final = 24
LEAD_CHARACTERS: Final = 24
PREVIEW_READ: Final = 200
_SPACES: Final = dict.fromkeys((*range(9, 14), *range(28, 33), 133, 8232, 8233), " ")
_ASCII_SPACES: Final = "".join(map(chr, range(128))).translate(_SPACES)
"""The same for ASCII: a table that has every character takes a sixth of the time."""


class Snippet(NamedTuple):
    """A piece of the text, and where in it the words stand that were searched for: (start, end) each."""

    text: str
    highlights: tuple[tuple[int, int], ...]


class Neighbour(NamedTuple):
    """A message right before or after a hit, in short."""

    seq: int
    role: str
    text: str


class Hit(NamedTuple):
    """A message that answers; ``seq`` is 0 and ``role`` empty where the session's title, name, tag or id does."""

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
    """The hits of one session; ``count`` is how many of this answer are its."""

    session_id: str
    title: str | None
    count: int
    hits: tuple[Hit, ...]


def make_snippet(leaves: Sequence[Words], given: Text) -> Snippet:
    """Return the piece of the text that shows most of the ``leaves`` of a query."""
    text = normal(given.raw)
    runs = [words.run for words in leaves if words.run]
    if runs and len(runs) == len(leaves):
        start, end, shown = _of_runs(text, runs)
    else:
        start, end, shown = _of_words(text, highlights(leaves, given))
    lead = "…" if start else ""
    rest = "…" if end < len(text) else ""
    piece = text[start:end].translate(_ASCII_SPACES if text.isascii() else _SPACES)
    shift = len(lead) - start
    return Snippet(f"{lead}{piece}{rest}", _joined([(first + shift, last + shift) for first, last in shown]))


_Piece: TypeAlias = tuple[int, int, list[tuple[int, int]]]
"""Where a piece of a text begins and ends, and the places in it that are highlighted."""


def _of_words(text: str, positions: Sequence[int]) -> _Piece:
    """Return the piece around the words at some positions."""
    first = max(0, positions[window(positions, size=WINDOW_WORDS)] - LEAD_WORDS) if positions else 0
    start = begin_of(text, first) if first else 0
    end = safe_end(text, start + SNIPPET_LENGTH)
    places = spans(text[start:end], limit=positions[-1] - first + 1 if positions else 0)
    shown = [places[each - first] for each in positions if first <= each < first + len(places)]
    return start, end, [(begin + start, last + start) for begin, last in shown]


def _of_runs(text: str, runs: Sequence[str]) -> _Piece:
    """Return the piece around the first of some runs of characters, which are found as they stand."""
    searched = wide(text)
    found = [at for at in map(searched.find, runs) if at >= 0]
    start = max(0, min(found, default=0) - LEAD_CHARACTERS)
    end = safe_end(text, start + SNIPPET_LENGTH)
    shown: set[int] = set()
    for run in runs:
        at = searched.find(run, start, end)
        while at >= 0:
            shown.update(range(at, at + len(run)))
            at = searched.find(run, at + len(run), end)
    return start, end, [(at, at + 1) for at in sorted(shown)]


def _joined(places: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the places with those that touch made one, as the characters of a Chinese word do."""
    joined: list[tuple[int, int]] = []
    for first, last in places:
        if joined and joined[-1][1] == first:
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return tuple(joined)


def group(tx: ReadTx, query: Query, found: Sequence[Match], *, neighbours: int) -> tuple[SessionHits, ...]:
    """Return the hits by session, sessions and hits in the order they were found."""
    surroundings = Surroundings(tx, found, reach=neighbours)
    leaves = tuple(query.leaves())
    by_session: dict[str, list[Hit]] = {}
    titles: dict[str, str | None] = {}
    for match in found:
        titles[match.session.id] = match.session.title
        by_session.setdefault(match.session.id, []).append(_hit(leaves, match, surroundings))
    return tuple(
        SessionHits(session_id=session_id, title=titles[session_id], count=len(hits), hits=tuple(hits))
        for session_id, hits in by_session.items()
    )


def _hit(leaves: Sequence[Words], match: Match, surroundings: "Surroundings") -> Hit:
    snippet = make_snippet(leaves, match.text)
    message = match.message
    if message is None:
        return Hit(seq=0, message_id=0, role="", created_at=match.key[0], snippet=snippet)
    return Hit(
        seq=message.seq,
        message_id=message.id,
        role=message.role,
        created_at=message.created_at,
        snippet=snippet,
        before=surroundings.before(match.session, message),
        after=surroundings.after(match.session, message),
        on_active_branch=surroundings.is_active(match.session, message),
    )


class Surroundings:
    """The messages around hits on their sessions' active branches.

    Nearly always these are the ones with the next numbers on the same branch, which are read for all hits at once;
    only where they are not there is the path of the branch looked up.
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
            (session_id, seq): Neighbour(seq, role, _short(parts))
            for session_id, seq, role, parts in search.list_near(tx, places, reach=reach)
        }
        """By session and number, all on active branches."""

    def is_active(self, session: SessionRow, message: MessageRow) -> bool:
        """Whether the message is on the session's active branch."""
        if message.branch_no == session.active_branch_no:
            return True
        owner = owner_of(self._path(session), message.seq)
        return owner is not None and (owner.session_id, owner.branch_no) == (session.id, message.branch_no)

    def before(self, session: SessionRow, message: MessageRow) -> tuple[Neighbour, ...]:
        """Return the messages right before, oldest first."""
        near = self._nearby(session, message, range(max(1, message.seq - self._reach), message.seq))
        return self._walk_back(session, message.seq) if near is None else near

    def after(self, session: SessionRow, message: MessageRow) -> tuple[Neighbour, ...]:
        """Return the messages right after, oldest first."""
        near = self._nearby(session, message, range(message.seq + 1, message.seq + self._reach + 1))
        return self._walk_on(session, message.seq) if near is None else near

    def _nearby(self, session: SessionRow, message: MessageRow, seqs: range) -> tuple[Neighbour, ...] | None:
        if message.branch_no != session.active_branch_no:
            return None
        near = self._near
        try:
            return tuple([near[session.id, seq] for seq in seqs])
        except KeyError:
            return None

    def _walk_back(self, session: SessionRow, seq: int) -> tuple[Neighbour, ...]:
        found: list[MessageRow] = []
        for segment in reversed(self._path(session)):
            last = seq - 1 if segment.last_seq is None else min(seq - 1, segment.last_seq)
            if len(found) < self._reach and segment.first_seq <= last:
                found += search.list_last(self._tx, segment, last_seq=last, limit=self._reach - len(found))
        return tuple(map(_neighbour, reversed(found)))

    def _walk_on(self, session: SessionRow, seq: int) -> tuple[Neighbour, ...]:
        found: list[MessageRow] = []
        for segment in self._path(session):
            last = messages.SEQ_MAX if segment.last_seq is None else segment.last_seq
            first = max(seq + 1, segment.first_seq)
            if len(found) < self._reach and first <= last:
                limit = self._reach - len(found)
                found += search.list_first(self._tx, segment, first_seq=first, last_seq=last, limit=limit)
        return tuple(map(_neighbour, found))

    def _path(self, session: SessionRow) -> list[Segment]:
        if session.id not in self._paths:
            self._paths[session.id] = branches.list_path(
                self._tx, session_id=session.id, branch_no=session.active_branch_no
            )
        return self._paths[session.id]


def _neighbour(message: MessageRow) -> Neighbour:
    return Neighbour(message.seq, message.role, _short(message.parts))


def _short(stored: str) -> str:
    """Return what ``preview_of`` returns, without looking at more of a long text than is shown."""
    if stored.startswith('"'):
        text = stored_text(stored)
        line = " ".join(text[:PREVIEW_READ].split())
        if line and (len(line) > PREVIEW_LENGTH or len(text) <= PREVIEW_READ):
            return cut(line, PREVIEW_LENGTH)
    return preview_of(decode_parts(stored))
