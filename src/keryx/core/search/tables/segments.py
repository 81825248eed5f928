"""Segments: the unit in which documents are indexed, read and merged. A finished segment never changes.

The documents of a segment are stored as chunks of columns. A merge in progress has a target and source segments.
"""

from array import array
from collections.abc import Collection
from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.search.rules.columns import ColumnChunk, DocumentColumns, pack_columns
from keryx.core.search.rules.index_format import CHUNK_DOCS
from keryx.store.codec import to_json
from keryx.store.database import ReadTx, Tx


def add_columns(tx: Tx, segment_id: int, columns: DocumentColumns) -> None:
    """Store the columns of a segment."""
    chunks = []
    for begin in range(0, len(columns.ids), CHUNK_DOCS):
        part = DocumentColumns(*(column[begin : begin + CHUNK_DOCS] for column in columns))
        chunks.append({"segment_id": segment_id, "chunk": begin // CHUNK_DOCS, "data": pack_columns(part)})
    tx.run_many("search_segments.add_chunk", chunks)


def list_chunks(tx: ReadTx, segment_id: int) -> list[ColumnChunk]:
    """Return the chunks of a segment in order."""
    return [ColumnChunk(data) for (data,) in tx.rows("search_segments.list_chunks", segment_id=segment_id)]


def find_chunks(tx: ReadTx, segment_id: int, chunks: Collection[int]) -> dict[int, ColumnChunk]:
    """Return some chunks of a segment by their numbers."""
    rows = tx.rows("search_segments.find_chunks", segment_id=segment_id, chunks=to_json(list(chunks)))
    return {number: ColumnChunk(data) for number, data in rows}


def list_chunks_of(tx: ReadTx, segment_ids: Collection[int]) -> list[tuple[int, int, ColumnChunk]]:
    """Return (segment, number, chunk) of all chunks of some segments."""
    rows = tx.rows("search_segments.list_chunks_of", ids=to_json(list(segment_ids)))
    return [(segment_id, number, ColumnChunk(data)) for segment_id, number, data in rows]


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
    for statement in ("search_segments.drop", "search_segments.drop_chunks", "search_blocks.drop"):
        tx.run(statement, segment_id=segment_id)


def add_source(tx: Tx, *, target_id: int, source_id: int, renumbering: "array[int]") -> None:
    """Record a source of a merge and the new numbers of its documents."""
    tx.run(
        "search_segments.add_source",
        target_id=target_id,
        source_id=source_id,
        renumbering=renumbering.tobytes(),
    )


def list_sources(tx: ReadTx, target_id: int) -> list[tuple[int, "array[int]"]]:
    """Return the sources of a merge with the new numbers of their documents, oldest first."""
    found = []
    for source_id, renumbering in tx.rows("search_segments.list_sources", target_id=target_id):
        numbers = array("H")
        numbers.frombytes(renumbering)
        found.append((source_id, numbers))
    return found


def drop_sources(tx: Tx, target_id: int) -> None:
    """Delete the sources of a finished merge."""
    tx.run("search_segments.drop_sources", target_id=target_id)
