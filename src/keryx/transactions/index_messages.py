"""Bring the search index up to date, in bounded steps: a batch of new facts, or a piece of a merge.

Runs in ``Database.write_index``: it reads everything and writes only the index, whose rows and watermark commit
together. The work shares the interpreter with the message writer, so it breathes often.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from keryx.domain.event import Position
from keryx.domain.long_result import LEFT_OUT, SEARCHED_MAX
from keryx.domain.message import decode_parts, search_text
from keryx.domain.postings import pack_blocks
from keryx.domain.search_match import features
from keryx.domain.segment import Author, Document, build_segment, document_scopes
from keryx.errors import StoreCorrupt
from keryx.store.database import Tx
from keryx.store.tables import blobs, search
from keryx.store.tables.search import NewFact, SegmentRow, SessionRow
from keryx.transactions.merge_segments import merge_is_due, merge_step
from keryx.values import dataclass

ROWS_MAX: Final = 500
TEXT_MAX: Final = 200_000
"""Characters of one batch, about 20 ms of work; a single longer message is a batch by itself."""
BEHIND_MAX: Final = 1_000
"""So many facts may wait while segments are merged: queries scan them meanwhile."""
SEGMENTS_MAX: Final = 64
"""With so many segments merging comes first, however much is waiting: each costs every query a look."""

CARD_KINDS: Final = ("session.opened", "session.changed")
"""Facts after which what is said of the session itself may be another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStep:
    """What one step did and what is left."""

    indexed: int
    """Facts of the feed that are covered now and were not before."""
    behind: int
    """Facts not covered yet, counted up to ``BEHIND_MAX`` + 1."""
    merged: bool
    """Whether the step was spent on merging."""
    more: bool
    """Whether there is work for another step right now."""


def no_breath() -> None:
    """Go on without letting anybody in between."""


def index_step(tx: Tx, *, rows_max: int = ROWS_MAX, breathe: Callable[[], None] = no_breath) -> IndexStep:
    """Index the next batch of facts or do a piece of a merge, whichever is more urgent.

    Raises ``StoreCorrupt`` for an index of another format: its tables may be others, so it is to be discarded.
    """
    position = search.lock(tx)
    if position is None:
        raise StoreCorrupt(
            "The search index has another format than this code writes; it has to be built anew."
        )
    behind = search.count_new(tx, after=position, limit=BEHIND_MAX + 1)
    segments = search.list_segments(tx)
    due = merge_is_due(tx, segments)
    if due and (behind <= BEHIND_MAX or len(segments) >= SEGMENTS_MAX):
        merge_step(tx, segments, breathe=breathe)
        return IndexStep(indexed=0, behind=behind, merged=True, more=True)
    indexed = _index_batch(tx, position, rows_max=rows_max, breathe=breathe) if behind else 0
    left = max(0, behind - indexed)
    return IndexStep(indexed=indexed, behind=left, merged=False, more=due or bool(indexed))


def clear_index(tx: Tx) -> None:
    """Empty the index; the steps that follow build it anew from the messages."""
    search.clear(tx)


def _index_batch(tx: Tx, position: Position, *, rows_max: int, breathe: Callable[[], None]) -> int:
    facts = _take(search.list_new(tx, after=position, limit=rows_max))
    if not facts:
        return 0
    documents = [_message_document(tx, fact) for fact in facts if fact.message_id is not None]
    said_of = {fact.session_id for fact in facts if fact.session_id and fact.kind in CARD_KINDS}
    documents += [
        _card_document(session, card_id=search.ensure_card(tx, session.id))
        for session in search.list_sessions(tx, said_of).values()
    ]
    for session_id in {fact.session_id for fact in facts if fact.session_id and fact.message_id is not None}:
        # Purged sessions are found by their card, so each one with words in the index needs a number for it.
        search.ensure_card(tx, session_id)
    if any(fact.kind == "session.purged" for fact in facts):
        search.add_purges(tx)
    if documents:
        _add_segment(tx, documents, breathe=breathe)
    search.advance(tx, Position(facts[-1].xid, facts[-1].id))
    return len(facts)


def _take(facts: list[NewFact]) -> list[NewFact]:
    """Return as many of the first facts as are work for one batch."""
    size = 0
    for index, fact in enumerate(facts):
        size += _size(fact) if fact.message_id is not None else 0
        if size > TEXT_MAX and index:
            return facts[:index]
    return facts


def _size(fact: NewFact) -> int:
    """Return about how many characters are to be indexed; where a result is kept beside it, as many as there may be."""
    return len(fact.parts) + fact.parts.count(LEFT_OUT) * SEARCHED_MAX


def _message_document(tx: Tx, fact: NewFact) -> Document:
    parts = decode_parts(fact.parts)
    assert fact.message_id is not None
    assert fact.session_id is not None
    return Document(
        id=fact.message_id,
        created_at=fact.created_at,
        text=search_text(parts, partial(blobs.find_result, tx, session_id=fact.session_id)),
        scopes=document_scopes(
            session_id=fact.session_id,
            audience_id=fact.audience_id,
            platform=fact.platform,
            role=fact.role,
            author=Author(fact.author, fact.author_id),
            features=features(parts),
        ),
    )


def _card_document(session: SessionRow, *, card_id: int) -> Document:
    return Document(
        id=-card_id,
        created_at=session.started_at,
        text=session.card,
        scopes=document_scopes(
            session_id=session.id, audience_id=session.audience_id, platform=session.platform
        ),
    )


def _add_segment(tx: Tx, documents: list[Document], *, breathe: Callable[[], None]) -> None:
    built = build_segment(documents, breathe=breathe)
    segment_id = search.take_segment(tx)
    times = built.columns.times
    segment = SegmentRow(
        segment_id=segment_id, born=segment_id, doc_count=len(times), first_at=times[0], last_at=times[-1]
    )
    search.add_segment(tx, segment, built.columns, marks=built.marks, finished=True)
    search.add_blocks(tx, segment_id, pack_blocks(built.entries))
