"""Keep the number of segments small, and take purged sessions out of them, a bounded piece at a time.

The newest documents stay in small segments: when a size class is full, only its oldest segments are merged. What a
merge has written is invisible until its last piece, and its sources are read until then.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from keryx.domain.postings import DOCS_MAX, Block, Columns, Packed, Piece, pack_blocks
from keryx.domain.segment import join_marks, merge_entries, renumber, scope_docs, scope_term
from keryx.store.database import Tx
from keryx.store.tables import search
from keryx.store.tables.search import SegmentRow

CLASSES: Final = ((64, 8), (512, 8), (4_096, 16), (32_500, 8))
"""Size classes: documents of the largest segment, and how many are merged at once; larger segments are left alone."""
KEPT: Final = 2
"""The newest segments of a class that stay small."""
BLOCKS_MAX: Final = 96
"""Blocks that one piece of a merge reads, about 20 ms of work."""
PURGES_MAX: Final = 100


def merge_is_due(tx: Tx, segments: Sequence[SegmentRow]) -> bool:
    """Whether ``merge_step`` has something to do."""
    return (
        search.find_merge(tx) is not None
        or bool(search.list_purges(tx, limit=1))
        or bool(segments_to_merge(segments))
    )


def segments_to_merge(segments: Sequence[SegmentRow]) -> list[SegmentRow]:
    """Return the segments that should become one, oldest first; none where no size class is full."""
    floor = 0
    for ceiling, wanted in CLASSES:
        members = sorted(
            (each for each in segments if floor < each.doc_count <= ceiling), key=lambda each: each.born
        )
        floor = ceiling
        chosen: list[SegmentRow] = []
        room = DOCS_MAX
        for each in members[:-KEPT][:wanted]:
            room -= each.doc_count
            if room < 0:
                # Full: of the largest class no more fit.
                return chosen
            chosen.append(each)
        if len(chosen) == wanted:
            return chosen
    return []


def merge_step(tx: Tx, segments: Sequence[SegmentRow], *, breathe: Callable[[], None]) -> None:
    """Do the next piece of the merge under way, or begin one."""
    under_way = search.find_merge(tx)
    if under_way is not None:
        _continue(tx, *under_way, breathe=breathe)
        return
    purged = search.list_purges(tx, limit=PURGES_MAX)
    if purged:
        _begin_purge(tx, segments, purged)
    else:
        _begin(tx, segments_to_merge(segments), gone={})


def _begin_purge(tx: Tx, segments: Sequence[SegmentRow], purged: list[str]) -> None:
    """Begin to rewrite one segment that holds a purged session; without any, the purge is done."""
    for segment in segments:
        gone = _documents_of(tx, segment.segment_id, purged)
        if len(gone) == segment.doc_count:
            search.drop_segment(tx, segment.segment_id)
            return
        if gone:
            _begin(tx, [segment], gone={segment.segment_id: gone})
            return
    for session_id in purged:
        search.finish_purge(tx, session_id)


def _documents_of(tx: Tx, segment_id: int, session_ids: list[str]) -> frozenset[int]:
    found: set[int] = set()
    terms = [scope_term("s", session_id) for session_id in session_ids]
    for block in search.find_blocks(tx, [segment_id], terms):
        posting = Block(block.data).find(block.term)
        if posting is not None:
            found.update(scope_docs(posting.docs))
    return frozenset(found)


def _begin(tx: Tx, sources: Sequence[SegmentRow], *, gone: dict[int, frozenset[int]]) -> None:
    ordered = sorted(sources, key=lambda each: each.born)
    columns = [_columns(tx, source.segment_id) for source in ordered]
    together, numbers = renumber(columns, gone=[gone.get(each.segment_id, frozenset()) for each in ordered])
    target = SegmentRow(
        segment_id=search.take_segment(tx),
        born=ordered[0].born,
        doc_count=len(together.ids),
        first_at=together.times[0],
        last_at=together.times[-1],
    )
    marks = join_marks(search.list_marks(tx, [source.segment_id for source in ordered]))
    search.add_segment(tx, target, together, marks=marks, finished=False)
    for source, renumbering in zip(ordered, numbers, strict=True):
        search.add_merge(
            tx, target_id=target.segment_id, source_id=source.segment_id, renumbering=renumbering
        )


def _columns(tx: Tx, segment_id: int) -> Columns:
    ids: list[int] = []
    times: list[int] = []
    lengths: list[int] = []
    for chunk in search.list_columns(tx, segment_id):
        columns = chunk.columns()
        ids.extend(columns.ids)
        times.extend(columns.times)
        lengths.extend(columns.lengths)
    return Columns(ids, times, lengths)


def _continue(tx: Tx, target_id: int, term: str, *, breathe: Callable[[], None]) -> None:
    sources = search.list_merge(tx, target_id)
    pieces, end = _next_pieces(tx, [source_id for source_id, _ in sources], term)
    numbers: list[array[int]] = [renumbering for _, renumbering in sources]
    entries = merge_entries(
        [_pieces(blocks, new, term=term, end=end) for blocks, new in zip(pieces, numbers, strict=True)],
        numbers,
        breathe=breathe,
    )
    search.add_blocks(tx, target_id, pack_blocks(entries))
    if end is None:
        search.finish_merge(tx, target_id, sources=[source_id for source_id, _ in sources])
    else:
        search.continue_merge(tx, target_id, merged_up_to=end)


def _next_pieces(tx: Tx, source_ids: Sequence[int], term: str) -> tuple[list[list[Packed]], str | None]:
    """Return each source's next blocks and the term before which all of them are known; None: to their ends."""
    limit = max(4, BLOCKS_MAX // len(source_ids))
    pieces = [search.list_blocks(tx, source_id, term=term, limit=limit + 1) for source_id in source_ids]
    ends = [piece[limit].term for piece in pieces if len(piece) > limit]
    return pieces, min(ends, default=None)


def _pieces(
    blocks: Sequence[Packed], renumbering: "array[int]", *, term: str, end: str | None
) -> Iterator[tuple[str, Piece]]:
    """Yield what the blocks hold from ``term`` up to, but without, ``end``."""
    for packed in blocks:
        if end is not None and packed.term >= end:
            return
        found = Block(packed.data)
        terms = found.terms
        pieces = found.pieces(packed.positions, renumbering=renumbering)
        if terms[0] >= term and (end is None or terms[-1] < end):
            yield from pieces
        else:
            yield from (each for each in pieces if each[0] >= term and (end is None or each[0] < end))
