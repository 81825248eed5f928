"""The documents of segments, as chunks of columns."""

from collections.abc import Collection

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
    tx.run_many("search_docs.add", chunks)


def list_chunks(tx: ReadTx, segment_id: int) -> list[ColumnChunk]:
    """Return the chunks of a segment in order."""
    return [ColumnChunk(data) for (data,) in tx.rows("search_docs.list", segment_id=segment_id)]


def find_chunks(tx: ReadTx, segment_id: int, chunks: Collection[int]) -> dict[int, ColumnChunk]:
    """Return some chunks of a segment by their numbers."""
    rows = tx.rows("search_docs.find", segment_id=segment_id, chunks=to_json(list(chunks)))
    return {number: ColumnChunk(data) for number, data in rows}


def list_chunks_of(tx: ReadTx, segment_ids: Collection[int]) -> list[tuple[int, int, ColumnChunk]]:
    """Return (segment, number, chunk) of all chunks of some segments."""
    rows = tx.rows("search_docs.list_of", ids=to_json(list(segment_ids)))
    return [(segment_id, number, ColumnChunk(data)) for segment_id, number, data in rows]
