"""Reads the columns and postings of segments; a chunk or a block is read once for each query."""

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from keryx.core.search.rules.blocks import Block, Postings
from keryx.core.search.rules.columns import ColumnChunk
from keryx.core.search.rules.document_sets import (
    DOC_MAX,
    DocumentFilter,
    DocumentSet,
    LazyUnion,
    PrefixDocuments,
    Runs,
    bounds,
    everything,
)
from keryx.core.search.rules.index_format import CHUNK_DOCS, SCOPE, TERM_MAX
from keryx.core.search.rules.phrases import PhraseFilter, TokenPositions
from keryx.core.search.rules.query import Phrase
from keryx.core.search.rules.scope_terms import scope_docs
from keryx.core.search.tables.blocks import FoundBlock, find_blocks, find_blocks_between, find_positions
from keryx.core.search.tables.segments import SegmentRow, find_chunks, list_chunks_of
from keryx.core.search.views.query_plan import LOOKUPS_MAX, DocumentKey, ScopeCondition
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

        def key_of(doc: int) -> DocumentKey:
            return self.keys(segment.segment_id, (doc,))[0]

        return bisect_left(range(segment.doc_count), key, key=key_of)

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


EXCLUSIVE: Final = "sapr"
"""Kinds of scope terms of which a document has at most one: session, audience, platform, role."""
_LAST_CHARACTER: Final = "\U0010ffff"

SegmentSets = dict[int, DocumentSet]
"""A set of documents for each segment."""


class PostingReader:
    """The postings of the segments that one query reads.

    With ``has_one_alternative`` a prefix needs to be known only for the documents that the conditions so far left.
    Ranking asks for prefixes of other alternatives too.
    """

    def __init__(self, tx: ReadTx, doc_counts: Mapping[int, int], *, has_one_alternative: bool) -> None:
        self._tx = tx
        self._doc_counts = doc_counts
        self._has_one_alternative = has_one_alternative
        self._postings: dict[tuple[int, str], Postings] = {}
        self._prefixes: dict[tuple[int, str], PrefixDocuments] = {}
        self._blocks: dict[int, Block] = {}
        self._block_ids: dict[tuple[int, str], int] = {}
        self._positions: dict[int, bytes] = {}
        self._preloaded: set[int] = set()
        """Segments in which ``preload`` looked up the terms; the blocks are in ``_found`` by term."""
        self._found: dict[str, list[FoundBlock]] = {}
        self._small_blocks: set[int] = set()
        """Blocks of small segments whose positions are read together when the first of them are needed."""

    def preload(self, segment_ids: Collection[int], terms: Collection[str]) -> None:
        """Look up terms in some segments with one statement."""
        self._preloaded = set(segment_ids)
        self._found = {}
        if segment_ids and terms:
            for found in find_blocks(self._tx, list(segment_ids), list(terms)):
                self._found.setdefault(found.term, []).append(found)

    def scope(self, condition: ScopeCondition, segment_ids: list[int]) -> SegmentSets:
        """Return the documents that have any of the scope terms."""
        terms = condition.terms
        found: dict[int, list[Sequence[int] | Runs]] = {segment_id: [] for segment_id in segment_ids}
        if len(terms) <= LOOKUPS_MAX:
            for block in self._find_blocks(segment_ids, terms):
                postings = self._block(block).find(block.term)
                if postings is not None:
                    found[block.segment_id].append(scope_docs(postings.docs))
        else:
            wanted, kind = set(terms), terms[0][:2]
            first, end = min(wanted), max(wanted) + SCOPE
            for block in find_blocks_between(self._tx, segment_ids, term=first, term_end=end):
                for term, postings in self._block(block).find_prefix(kind):
                    if term in wanted:
                        found[block.segment_id].append(scope_docs(postings.docs))
        is_exclusive = terms[0][1] in EXCLUSIVE if terms else False
        return {
            segment_id: _unite_disjoint(sets, self._doc_counts[segment_id] if is_exclusive else None)
            for segment_id, sets in found.items()
            if sets
        }

    def token(self, token: str, segment_ids: Iterable[int]) -> SegmentSets:
        """Return the documents that hold a token."""
        term = token[:TERM_MAX]
        found: SegmentSets = {}
        for block in self._find_blocks(segment_ids, (term,)):
            postings = self._block(block).find(term)
            if postings is not None:
                found[block.segment_id] = postings.docs
                self._postings[block.segment_id, term] = postings
                self._block_ids[block.segment_id, term] = block.block_id
        return found

    def prefix(self, prefix: str, live: SegmentSets) -> SegmentSets:
        """Return the documents that hold a token with this prefix; those outside ``live`` may be missing."""
        found: dict[int, list[Sequence[int]]] = {segment_id: [] for segment_id in live}
        is_alone = self._has_one_alternative
        within = {segment_id: bounds(docs) if is_alone else (0, DOC_MAX) for segment_id, docs in live.items()}
        first = prefix[:TERM_MAX]
        for block in find_blocks_between(self._tx, list(live), term=first, term_end=first + _LAST_CHARACTER):
            docs = self._block(block).prefix_docs(first, within=within[block.segment_id])
            found[block.segment_id].append(docs)
        sets: SegmentSets = {}
        for segment_id, parts in found.items():
            among = live[segment_id]
            is_narrow = is_alone and isinstance(among, (Runs, array)) and len(among) < sum(map(len, parts))
            documents = PrefixDocuments(parts, among=among if is_narrow else None)
            sets[segment_id] = self._prefixes[segment_id, prefix] = documents
        return sets

    def phrase_filter(self, phrase: Phrase, segment_id: int) -> DocumentFilter:
        """Return the filter that keeps the documents in which a phrase may occur.

        The tokens of the phrase must have been read with ``token``. A prefix at its end is not compared.
        """
        whole = phrase.lookup_tokens[:-1] if phrase.prefix else phrase.lookup_tokens
        tokens = []
        for offset, token in whole:
            key = (segment_id, token[:TERM_MAX])
            block_id = self._block_ids[key]
            tokens.append(TokenPositions(offset, self._postings[key], block_id=block_id))
            if self._doc_counts[segment_id] <= SMALL:
                self._small_blocks.add(block_id)
        return PhraseFilter(tokens, read=self._read_positions).keep

    def counts(self, phrase: Phrase, segment_id: int, docs: Sequence[int]) -> list[int]:
        """Return how often a phrase occurs in some documents, for ranking.

        The count of several tokens is that of the rarest one. A prefix counts once.
        """
        last = len(phrase.lookup_tokens) - 1
        counts: list[list[int]] = []
        for index, (_, token) in enumerate(phrase.lookup_tokens):
            if phrase.prefix and index == last:
                documents = self._prefixes.get((segment_id, token))
                holding = set() if documents is None else set(documents.keep(docs))
                counts.append([int(doc in holding) for doc in docs])
            else:
                postings = self._postings.get((segment_id, token[:TERM_MAX]))
                counts.append([0] * len(docs) if postings is None else postings.counts_in(docs))
        return counts[0] if len(counts) == 1 else [min(each) for each in zip(*counts, strict=True)]

    def _find_blocks(self, segment_ids: Iterable[int], terms: Iterable[str]) -> list[FoundBlock]:
        """Return, for each segment and term, the block that can hold the term."""
        wanted = set(segment_ids)
        known = [block for term in terms for block in self._found.get(term, ()) if block.segment_id in wanted]
        missing = wanted - self._preloaded
        return known + find_blocks(self._tx, list(missing), list(terms)) if missing else known

    def _read_positions(self, block_ids: Sequence[int]) -> dict[int, bytes]:
        missing = set(block_ids) - self._positions.keys()
        if not missing.isdisjoint(self._small_blocks):
            missing |= self._small_blocks - self._positions.keys()
            self._small_blocks.clear()
        self._positions.update(find_positions(self._tx, missing))
        return self._positions

    def _block(self, found: FoundBlock) -> Block:
        block = self._blocks.get(found.block_id)
        if block is None:
            block = self._blocks[found.block_id] = Block(found.data)
        return block


def _unite_disjoint(sets: Sequence[Sequence[int] | Runs], doc_count: int | None) -> DocumentSet:
    """Return the union of disjoint sets in a segment of ``doc_count`` documents.

    A union that is the whole segment becomes a range, so that no document is looked up.
    """
    if doc_count is not None and sum(map(len, sets)) == doc_count:
        return everything(doc_count)
    return LazyUnion(sets) if len(sets) > 1 else sets[0]
