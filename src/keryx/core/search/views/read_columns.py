"""Reads the keys and lengths of documents; a chunk of columns is read once for each query."""

from collections.abc import Sequence
from typing import Final

from keryx.core.search.rules.columns import ColumnChunk
from keryx.core.search.rules.index_format import CHUNK_DOCS
from keryx.core.search.tables.documents import find_chunks, list_chunks_of
from keryx.core.search.tables.segments import SegmentRow
from keryx.core.search.views.query_plan import DocumentKey
from keryx.store.database import ReadTx

SMALL: Final = CHUNK_DOCS
"""Segments with up to this many documents are small: data of several of them is read in one statement."""


class ColumnReader:
    """The columns of the segments that one query reads."""

    def __init__(self, tx: ReadTx) -> None:
        self._tx = tx
        self._chunks: dict[int, dict[int, ColumnChunk]] = {}
        self._small: set[int] = set()
        """Small segments whose columns are read together when the first of them are needed."""

    def expect(self, segment: SegmentRow) -> None:
        """Note that the columns of a segment will be needed."""
        if segment.doc_count <= SMALL:
            self._small.add(segment.segment_id)

    def keys(self, segment_id: int, docs: Sequence[int]) -> list[DocumentKey]:
        """Return the keys of some documents."""
        numbers = [doc // CHUNK_DOCS for doc in docs]
        chunks = self._read(segment_id, set(numbers))
        return [chunks[number].key(doc % CHUNK_DOCS) for number, doc in zip(numbers, docs, strict=True)]

    def count_before(self, segment: SegmentRow, key: DocumentKey) -> int:
        """Return how many documents of a segment have a smaller key, by binary search."""
        low, high = 0, segment.doc_count
        while low < high:
            middle = (low + high) // 2
            number = middle // CHUNK_DOCS
            if self._read(segment.segment_id, {number})[number].key(middle % CHUNK_DOCS) < key:
                low = middle + 1
            else:
                high = middle
        return low

    def lengths(self, segment_id: int, docs: Sequence[int]) -> list[int]:
        """Return the lengths in words of documents whose keys were read."""
        lengths = {number: chunk.lengths for number, chunk in self._chunks[segment_id].items()}
        return [lengths[doc // CHUNK_DOCS][doc % CHUNK_DOCS] for doc in docs]

    def _read(self, segment_id: int, wanted: set[int]) -> dict[int, ColumnChunk]:
        known = self._chunks.setdefault(segment_id, {})
        missing = wanted - known.keys()
        if missing and segment_id in self._small:
            for small_id, number, chunk in list_chunks_of(self._tx, self._small):
                self._chunks.setdefault(small_id, {})[number] = chunk
            self._small.clear()
        elif missing:
            known.update(find_chunks(self._tx, segment_id, missing))
        return known
