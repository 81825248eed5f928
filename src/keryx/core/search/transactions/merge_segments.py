"""Keeps the number of segments small and removes purged sessions from them, in bounded steps.

The newest documents stay in small segments: when a size class is full, only its oldest segments are merged. The target
of a merge is invisible until its last step; until then queries read the sources.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from keryx.core.search.rules.blocks import Block, PackedBlock, PostingList, pack_blocks
from keryx.core.search.rules.build_segment import merge_entries, renumber
from keryx.core.search.rules.columns import join_columns
from keryx.core.search.rules.index_format import DOCS_MAX
from keryx.core.search.rules.scope_terms import join_marks, scope_docs, scope_term
from keryx.core.search.tables import segments as tables
from keryx.core.search.tables.blocks import add_blocks, find_blocks, list_blocks
from keryx.core.search.tables.index_state import drop_card, finish_purge, list_purges, take_segment_id
from keryx.core.search.tables.segments import SegmentRow
from keryx.store.database import Tx

CLASSES: Final = ((64, 8), (512, 8), (4_096, 16), (32_500, 8))
"""Size classes: the most documents of a segment, and how many segments a merge takes. Larger ones are not merged."""
NEWEST_KEPT: Final = 2
"""How many of the newest segments of a class are not merged."""
BLOCKS_MAX: Final = 96
"""Blocks that one step of a merge reads, about 20 ms of work."""
PURGES_MAX: Final = 100


def merge_is_due(tx: Tx, segments: Sequence[SegmentRow]) -> bool:
    """Return whether ``merge_step`` has something to do."""
    return (
        tables.find_unfinished(tx) is not None
        or bool(list_purges(tx, limit=1))
        or bool(segments_to_merge(segments))
    )


def segments_to_merge(segments: Sequence[SegmentRow]) -> list[SegmentRow]:
    """Return the segments to merge into one, oldest first; none if no size class is full."""
    floor = 0
    for ceiling, wanted in CLASSES:
        members = sorted(
            (each for each in segments if floor < each.doc_count <= ceiling), key=lambda each: each.born
        )
        floor = ceiling
        chosen: list[SegmentRow] = []
        room = DOCS_MAX
        for each in members[:-NEWEST_KEPT][:wanted]:
            room -= each.doc_count
            if room < 0:
                # In the largest class, fewer segments than wanted can fill the target.
                return chosen
            chosen.append(each)
        if len(chosen) == wanted:
            return chosen
    return []


def merge_step(tx: Tx, segments: Sequence[SegmentRow], *, yield_control: Callable[[], None]) -> None:
    """Do the next step of the merge in progress, or begin a merge."""
    unfinished = tables.find_unfinished(tx)
    if unfinished is not None:
        _continue(tx, *unfinished, yield_control=yield_control)
        return
    purged = list_purges(tx, limit=PURGES_MAX)
    if purged:
        _begin_purge(tx, segments, purged)
    else:
        _begin(tx, segments_to_merge(segments), removed={})


def _begin_purge(tx: Tx, segments: Sequence[SegmentRow], purged: list[str]) -> None:
    """Begin to rewrite one segment that holds a purged session. If no segment does, the purge is finished."""
    for segment in segments:
        removed = _documents_of(tx, segment.segment_id, purged)
        if len(removed) == segment.doc_count:
            tables.drop_segment(tx, segment.segment_id)
            return
        if removed:
            _begin(tx, [segment], removed={segment.segment_id: removed})
            return
    for session_id in purged:
        finish_purge(tx, session_id)
        drop_card(tx, session_id)


def _documents_of(tx: Tx, segment_id: int, session_ids: list[str]) -> frozenset[int]:
    found: set[int] = set()
    terms = [scope_term("s", session_id) for session_id in session_ids]
    for block in find_blocks(tx, [segment_id], terms):
        postings = Block(block.data).find(block.term)
        if postings is not None:
            found.update(scope_docs(postings.docs))
    return frozenset(found)


def _begin(tx: Tx, sources: Sequence[SegmentRow], *, removed: dict[int, frozenset[int]]) -> None:
    ordered = sorted(sources, key=lambda each: each.born)
    columns = [join_columns(tables.list_chunks(tx, source.segment_id)) for source in ordered]
    merged, numbers = renumber(
        columns, removed=[removed.get(each.segment_id, frozenset()) for each in ordered]
    )
    target = SegmentRow(
        segment_id=take_segment_id(tx),
        born=ordered[0].born,
        doc_count=len(merged.ids),
        first_at=merged.times[0],
        last_at=merged.times[-1],
    )
    marks = join_marks(tables.list_marks(tx, [source.segment_id for source in ordered]))
    tables.add_segment(tx, target, merged, marks=marks, finished=False)
    for source, renumbering in zip(ordered, numbers, strict=True):
        tables.add_source(
            tx, target_id=target.segment_id, source_id=source.segment_id, renumbering=renumbering
        )


def _continue(tx: Tx, target_id: int, term: str, *, yield_control: Callable[[], None]) -> None:
    sources = tables.list_sources(tx, target_id)
    source_ids = [source_id for source_id, _ in sources]
    numbers: list[array[int]] = [renumbering for _, renumbering in sources]
    blocks, end = _next_blocks(tx, source_ids, term)
    entries = merge_entries(
        [_posting_lists(some, new, term=term, end=end) for some, new in zip(blocks, numbers, strict=True)],
        numbers,
        yield_control=yield_control,
    )
    add_blocks(tx, target_id, pack_blocks(entries))
    if end is not None:
        tables.continue_merge(tx, target_id, merged_up_to=end)
        return
    tables.finish_segment(tx, target_id)
    tables.drop_sources(tx, target_id)
    for source_id in source_ids:
        tables.drop_segment(tx, source_id)


def _next_blocks(tx: Tx, source_ids: Sequence[int], term: str) -> tuple[list[list[PackedBlock]], str | None]:
    """Return each source's next blocks, and the term before which these are complete; None: to the end."""
    limit = max(4, BLOCKS_MAX // len(source_ids))
    blocks = [list_blocks(tx, source_id, term=term, limit=limit + 1) for source_id in source_ids]
    ends = [some[limit].term for some in blocks if len(some) > limit]
    return blocks, min(ends, default=None)


def _posting_lists(
    blocks: Sequence[PackedBlock], renumbering: "array[int]", *, term: str, end: str | None
) -> Iterator[tuple[str, PostingList]]:
    """Yield the terms of the blocks from ``term`` up to, but without, ``end``, with their posting lists."""
    for packed in blocks:
        if end is not None and packed.term >= end:
            return
        block = Block(packed.data)
        terms = block.terms
        found = block.posting_lists(packed.positions, renumbering=renumbering)
        if terms[0] >= term and (end is None or terms[-1] < end):
            yield from found
        else:
            yield from (each for each in found if each[0] >= term and (end is None or each[0] < end))
