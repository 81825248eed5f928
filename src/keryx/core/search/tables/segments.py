"""Segments: the unit in which documents are indexed, read and merged. A finished segment never changes."""

from collections.abc import Collection
from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.search.rules.columns import DocumentColumns
from keryx.core.search.tables.documents import add_columns
from keryx.store.codec import to_json
from keryx.store.database import ReadTx, Tx


class SegmentRow(NamedTuple):
    """A segment that queries read. ``born`` orders segments by when their documents were indexed."""

    segment_id: int
    born: int
    doc_count: int
    first_at: Micros
    last_at: Micros


def add_segment(
    tx: Tx, segment: SegmentRow, columns: DocumentColumns, *, marks: bytes, finished: bool
) -> None:
    """Store a segment and its columns. ``blocks.add_blocks`` stores its blocks."""
    tx.run(
        "search_segments.add",
        **segment._asdict(),
        marks=marks,
        merged_up_to=None if finished else "",
        finished_at=tx.now if finished else None,
    )
    add_columns(tx, segment.segment_id, columns)


def list_segments(tx: ReadTx) -> list[SegmentRow]:
    """Return the segments that queries read, the one with the newest document first."""
    return tx.all(SegmentRow, "search_segments.list")


def list_marked(tx: ReadTx, mark: bytes) -> set[int]:
    """Return the segments that may hold the session with this mark."""
    return {segment_id for (segment_id,) in tx.rows("search_segments.list_marked", mark=mark)}


def list_marks(tx: ReadTx, segment_ids: Collection[int]) -> list[bytes]:
    """Return the session marks of some segments."""
    return tx.values("search_segments.list_marks", ids=to_json(list(segment_ids)))


def find_unfinished(tx: ReadTx) -> tuple[int, str] | None:
    """Return the target of the merge in progress and the term with which the merge continues, or None."""
    row = tx.row("search_segments.find_unfinished")
    return None if row is None else (row[0], row[1])


def continue_merge(tx: Tx, target_id: int, *, merged_up_to: str) -> None:
    """Record that the merge has written all terms before ``merged_up_to``."""
    tx.run("search_segments.continue", segment_id=target_id, merged_up_to=merged_up_to)


def finish_segment(tx: Tx, segment_id: int) -> None:
    """Make the target of a merge visible to queries."""
    tx.run("search_segments.finish", segment_id=segment_id)


def drop_segment(tx: Tx, segment_id: int) -> None:
    """Delete a segment with its columns and blocks."""
    for statement in ("search_segments.drop", "search_docs.drop", "search_blocks.drop"):
        tx.run(statement, segment_id=segment_id)
