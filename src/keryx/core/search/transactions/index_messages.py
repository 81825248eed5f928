"""Brings the search index up to date in bounded steps: a batch of new facts, or a piece of a merge.

Runs in ``Database.write_index``: a step reads everything and writes only the index, whose rows and position commit
together. The work shares the interpreter with the writer of messages, so it yields control often.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from keryx.core.conversations.rules.event import Position
from keryx.core.media.rules import OMISSION, SEARCHED_CHARACTERS_MAX
from keryx.core.search.rules.blocks import pack_blocks
from keryx.core.search.rules.build_segment import IndexDocument, build_segment
from keryx.core.search.tables import index_state
from keryx.core.search.tables.blocks import add_blocks
from keryx.core.search.tables.index_state import add_purges, ensure_card
from keryx.core.search.tables.segments import SegmentRow, add_segment, list_segments
from keryx.core.search.transactions.merge_segments import merge_is_due, merge_step
from keryx.core.search.views.facts_to_index import (
    NewFact,
    card_document,
    count_new,
    list_new,
    message_document,
)
from keryx.core.search.views.searched_rows import list_sessions
from keryx.errors import StoreCorrupt
from keryx.store.database import Tx

ROWS_MAX: Final = 500
TEXT_MAX: Final = 200_000
"""Characters in one batch, about 20 ms of work. A single longer message is a batch by itself."""
BEHIND_MAX: Final = 1_000
"""Merging goes before indexing only while no more facts than this wait. Until they are indexed, queries scan them."""
SEGMENTS_MAX: Final = 64
"""With this many segments, merging goes first in any case: every query looks into each of them."""

CARD_KINDS: Final = ("session.opened", "session.changed")
"""Facts that can change the text of a session card."""


class IndexStep(NamedTuple):
    """What one step did and what is left."""

    indexed: int
    """Facts of the feed that the step indexed."""
    behind: int
    """Facts not indexed yet, counted up to ``BEHIND_MAX`` + 1."""
    merged: bool
    """Whether the step was spent on merging."""
    more: bool
    """Whether there is work for another step now."""


def keep_control() -> None:
    """Do not yield control."""


def index_step(
    tx: Tx, *, rows_max: int = ROWS_MAX, yield_control: Callable[[], None] = keep_control
) -> IndexStep:
    """Index the next batch of facts or do a piece of a merge, whichever is more urgent.

    Raises ``StoreCorrupt`` for an index of another format. Its tables may differ too, so the caller must discard it.
    """
    position = index_state.lock_position(tx)
    if position is None:
        raise StoreCorrupt("The search index has another format than this code writes; it must be rebuilt.")
    behind = count_new(tx, after=position, limit=BEHIND_MAX + 1)
    segments = list_segments(tx)
    is_due = merge_is_due(tx, segments)
    if is_due and (behind <= BEHIND_MAX or len(segments) >= SEGMENTS_MAX):
        merge_step(tx, segments, yield_control=yield_control)
        return IndexStep(indexed=0, behind=behind, merged=True, more=True)
    indexed = _index_batch(tx, position, rows_max=rows_max, yield_control=yield_control) if behind else 0
    left = max(0, behind - indexed)
    return IndexStep(indexed=indexed, behind=left, merged=False, more=is_due or bool(indexed))


def clear_index(tx: Tx) -> None:
    """Empty the index. The steps that follow rebuild it from the messages."""
    index_state.clear_index(tx)


def _index_batch(tx: Tx, position: Position, *, rows_max: int, yield_control: Callable[[], None]) -> int:
    facts = _first_batch(list_new(tx, after=position, limit=rows_max))
    if not facts:
        return 0
    documents = [document for fact in facts if (document := _document(tx, fact)) is not None]
    changed = {fact.session_id for fact in facts if fact.session_id and fact.kind in CARD_KINDS}
    documents += [
        card_document(session, card_id=ensure_card(tx, session.id))
        for session in list_sessions(tx, changed).values()
    ]
    for session_id in {fact.session_id for fact in facts if fact.session_id and fact.message_id is not None}:
        # A purge finds the sessions in the index by their cards, so each session with messages needs one.
        ensure_card(tx, session_id)
    if any(fact.kind == "session.purged" for fact in facts):
        add_purges(tx)
    if documents:
        _add_segment(tx, documents, yield_control=yield_control)
    index_state.advance(tx, Position(facts[-1].xid, facts[-1].id))
    return len(facts)


def _first_batch(facts: list[NewFact]) -> list[NewFact]:
    size = 0
    for index, fact in enumerate(facts):
        size += _size(fact) if fact.message_id is not None else 0
        if size > TEXT_MAX and index:
            return facts[:index]
    return facts


def _size(fact: NewFact) -> int:
    """Return about how many characters to index. A result that is kept as a blob counts with the most it can have."""
    return len(fact.body) + fact.body.count(OMISSION) * SEARCHED_CHARACTERS_MAX


def _document(tx: Tx, fact: NewFact) -> IndexDocument | None:
    if fact.message_id is None:
        return None
    assert fact.session_id is not None
    return message_document(tx, fact, id_=fact.message_id, session_id=fact.session_id, session=fact)


def _add_segment(tx: Tx, documents: list[IndexDocument], *, yield_control: Callable[[], None]) -> None:
    built = build_segment(documents, yield_control=yield_control)
    segment_id = index_state.take_segment_id(tx)
    times = built.columns.times
    segment = SegmentRow(
        segment_id=segment_id, born=segment_id, doc_count=len(times), first_at=times[0], last_at=times[-1]
    )
    add_segment(tx, segment, built.columns, marks=built.marks, finished=True)
    add_blocks(tx, segment_id, pack_blocks(built.entries))
