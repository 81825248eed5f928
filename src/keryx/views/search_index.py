"""Walking the index: which documents may answer a query, newest first.

The index only proposes: every set returned here holds at least the documents that answer, and the text decides.
Segments are read newest first and only as far as somebody asks for more.
"""

from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from heapq import heappop, heappush
from itertools import islice
from typing import Final, TypeAlias

from keryx.domain.docsets import (
    DOC_MAX,
    AnyOf,
    DocSet,
    Heap,
    Runs,
    bounds,
    everything,
    intersect,
    passing,
    subtract,
    unite,
)
from keryx.domain.phrases import Phrase, Standing
from keryx.domain.postings import CHUNK, SCOPE, TERM_MAX, Block, Chunk, Posting
from keryx.domain.search_query import All, Not, Words
from keryx.domain.segment import scope_docs, session_mark
from keryx.store.database import ReadTx
from keryx.store.tables import search
from keryx.store.tables.search import SegmentRow
from keryx.values import dataclass
from keryx.views.search_plan import (
    LOOKUPS_MAX,
    PAGE,
    Condition,
    Key,
    Plan,
    ScopeGroup,
    Stages,
    Token,
    in_order,
    whole_terms,
)

MANY: Final = 4_096
"""In segments of so few documents everything is looked up at once; in larger ones a term may take long to read."""
EXCLUSIVE: Final = "sapr"
"""Kinds of scope terms of which a document has one at most: session, audience, platform, role."""
READ_MIN: Final = 4
"""Candidates whose keys are read at once, at least; the first time as many as a page still lacks."""
STRIDE_MAX: Final = 2_048
SMALL: Final = CHUNK
"""What segments of so few documents hold is read for several of them at once."""
_FIRST: Final = -(1 << 62)


Candidate: TypeAlias = tuple[Key, int, int]
"""A document that may answer: (key, segment, number in it). A plain tuple, because ranking looks at thousands."""


class IndexReader:
    """One query's look at the index; what was read once is kept until it ends."""

    def __init__(self, tx: ReadTx, plan: Plan) -> None:
        self._tx = tx
        self._plan = plan
        self._alternatives = [
            list(in_order(alternative, plan.scopes)) for alternative in plan.query.words.nodes or (All(()),)
        ]
        """What each alternative asks for, in this order."""
        self._terms = {
            term for conditions in self._alternatives for each in conditions for term in whole_terms(each)
        }
        self._chunks: dict[int, dict[int, Chunk]] = {}
        self._postings: dict[tuple[int, str], Posting] = {}
        self._prefixes: dict[tuple[int, str], Heap] = {}
        self._blocks: dict[int, Block] = {}
        self._block_ids: dict[tuple[int, str], int] = {}
        self._doc_counts: dict[int, int] = {}
        self._positions: dict[int, bytes] = {}
        self._known: set[int] = set()
        """Segments in which all whole terms were looked up; what they hold is in ``_found``, by term."""
        self._found: dict[str, list[search.FoundBlock]] = {}
        self._small: set[int] = set()
        """Small segments whose columns are read together when the first ones are needed."""
        self._small_blocks: set[int] = set()
        """Blocks of small segments whose positions are read together when the first ones are needed."""

    def newest(self) -> Iterator[Candidate]:
        """Yield all candidates, newest first; none of an index in another format, which will be built anew."""
        segments = [] if search.covered(self._tx) is None else search.list_segments(self._tx)
        if self._plan.session_term is not None:
            marked = search.list_marked(self._tx, session_mark(self._plan.session_term))
            segments = [each for each in segments if each.segment_id in marked]
        self._doc_counts = {each.segment_id: each.doc_count for each in segments}
        stages = Stages([each for each in segments if self._may_hold(each)])
        heap: list[tuple[Key, int, _Walk]] = []
        given = 0
        while heap or stages.last_at is not None:
            if stages.last_at is not None and (not heap or -heap[0][0][0] <= stages.last_at):
                for segment, docs in self._evaluate(stages.take(given)):
                    walk = _Walk(segment, iter(reversed(self._cut(segment, docs))))
                    # Not looked at yet, so it stands where its newest document could stand at most.
                    heappush(heap, ((-segment.last_at, _FIRST), segment.segment_id, walk))
                continue
            _, _, walk = heappop(heap)
            others = -heap[0][0][0] if heap else _FIRST
            if stages.last_at is not None:
                others = max(others, stages.last_at)
            while walk.ahead and (walk.ahead[0][0][0] > others or walk.is_next):
                walk.is_next = False
                given += 1
                yield walk.ahead.popleft()
            if not walk.ahead and not walk.is_at_end:
                self._read_ahead(walk, given)
            if walk.ahead:
                # It goes on from here, or waits until the others have come so far.
                at, id_ = walk.ahead[0][0]
                walk.is_next = True
                heappush(heap, ((-at, -id_), walk.segment.segment_id, walk))

    def counts_of(self, words: Words, segment_id: int, docs: Sequence[int]) -> list[int]:
        """How often ``words`` stand in some documents: of a phrase its rarest token, of a prefix once; for ranking."""
        last = len(words.key_tokens) - 1
        counts: list[list[int]] = []
        for index, (_, token) in enumerate(words.key_tokens):
            if words.prefix and index == last:
                prefixed = self._prefixes.get((segment_id, token))
                among = set() if prefixed is None else set(prefixed.keep(docs))
                counts.append([int(doc in among) for doc in docs])
            else:
                posting = self._postings.get((segment_id, token[:TERM_MAX]))
                counts.append([0] * len(docs) if posting is None else posting.counts_of(docs))
        return counts[0] if len(counts) == 1 else [min(each) for each in zip(*counts, strict=True)]

    def lengths_of(self, segment_id: int, docs: Sequence[int]) -> list[int]:
        """How many words some candidates have."""
        lengths = {number: chunk.lengths for number, chunk in self._chunks[segment_id].items()}
        return [lengths[doc // CHUNK][doc % CHUNK] for doc in docs]

    def _may_hold(self, segment: SegmentRow) -> bool:
        before, after = self._plan.before, self._plan.after
        return (before is None or segment.first_at <= before[0]) and (
            after is None or segment.last_at >= after
        )

    def _read_ahead(self, walk: "_Walk", given: int) -> None:
        missing = PAGE - given if given < PAGE else PAGE
        walk.stride = min(4 * walk.stride, STRIDE_MAX) or max(READ_MIN, missing)
        docs = list(islice(walk.docs, walk.stride))
        walk.is_at_end = len(docs) < walk.stride
        segment_id = walk.segment.segment_id
        numbers = [doc // CHUNK for doc in docs]
        chunks = self._read_chunks(segment_id, set(numbers))
        keys = [chunks[number].key(doc % CHUNK) for number, doc in zip(numbers, docs, strict=True)]
        after = self._plan.after
        if after is not None and keys and keys[-1][0] < after:
            keys = [key for key in keys if key[0] >= after]
            walk.is_at_end = True
        walk.ahead.extend([(key, segment_id, doc) for key, doc in zip(keys, docs, strict=False)])

    def _read_chunks(self, segment_id: int, wanted: set[int]) -> dict[int, Chunk]:
        known = self._chunks.setdefault(segment_id, {})
        missing = wanted - known.keys()
        if missing and segment_id in self._small:
            for small_id, number, chunk in search.list_columns_of(self._tx, self._small):
                self._chunks.setdefault(small_id, {})[number] = chunk
            self._small.clear()
        elif missing:
            known.update(search.find_columns(self._tx, segment_id, missing))
        return known

    def _cut(self, segment: SegmentRow, docs: DocSet) -> DocSet:
        """Return the documents that come before the plan's end, found by halving."""
        before = self._plan.before
        if before is None or segment.last_at < before[0]:
            return docs
        low, high = 0, segment.doc_count
        while low < high:
            middle = (low + high) // 2
            number = middle // CHUNK
            if self._read_chunks(segment.segment_id, {number})[number].key(middle % CHUNK) < before:
                low = middle + 1
            else:
                high = middle
        return intersect(docs, range(low))

    def _evaluate(self, segments: Sequence[SegmentRow]) -> list[tuple[SegmentRow, DocSet]]:
        self._look_up([each.segment_id for each in segments if each.doc_count <= MANY])
        found = [self._evaluate_all(conditions, segments) for conditions in self._alternatives]
        filled: list[tuple[SegmentRow, DocSet]] = []
        for segment in segments:
            docs = unite([each[segment.segment_id] for each in found if segment.segment_id in each])
            if len(docs):
                if segment.doc_count <= SMALL:
                    self._small.add(segment.segment_id)
                filled.append((segment, docs))
        return filled

    def _evaluate_all(
        self, conditions: Sequence[Condition], segments: Sequence[SegmentRow]
    ) -> dict[int, DocSet]:
        live: dict[int, DocSet] = {each.segment_id: everything(each.doc_count) for each in segments}
        for condition in conditions:
            match condition:
                case ScopeGroup():
                    live = _apply(live, self._scope(condition, list(live)), negated=condition.negated)
                case Token():
                    live = _apply(live, self._token(condition, live), negated=False)
                case Words():
                    live = self._phrase(condition, live)
                case Not(node):
                    # Only what the index knows for certain may be taken away: a whole token that was not cut.
                    if len(node.tokens) == 1 and not node.prefix and len(node.tokens[0][1]) < TERM_MAX:
                        token = Token(node.tokens[0][1], is_prefix=False)
                        live = _apply(live, self._token(token, live), negated=True)
            if not live:
                break
        return live

    def _look_up(self, segment_ids: list[int]) -> None:
        """Read what all whole terms of the query hold in some segments, at once."""
        self._known = set(segment_ids)
        self._found = {}
        if segment_ids and self._terms:
            for read in search.find_blocks(self._tx, segment_ids, list(self._terms)):
                self._found.setdefault(read.term, []).append(read)

    def _find_blocks(self, segment_ids: Iterable[int], terms: Iterable[str]) -> list[search.FoundBlock]:
        """Return for each segment and term the block that holds the term, if any does."""
        wanted = set(segment_ids)
        known = [read for term in terms for read in self._found.get(term, ()) if read.segment_id in wanted]
        missing = wanted - self._known
        return known + search.find_blocks(self._tx, list(missing), list(terms)) if missing else known

    def _scope(self, group: ScopeGroup, segment_ids: list[int]) -> dict[int, DocSet]:
        found: dict[int, list[Sequence[int] | Runs]] = {segment_id: [] for segment_id in segment_ids}
        if len(group.terms) <= LOOKUPS_MAX:
            for block in self._find_blocks(segment_ids, group.terms):
                posting = self._block(block).find(block.term)
                if posting is not None:
                    found[block.segment_id].append(scope_docs(posting.docs))
        else:
            wanted, kind = set(group.terms), group.terms[0][:2]
            for block in search.find_blocks_between(
                self._tx, segment_ids, term=min(wanted), term_end=max(wanted) + SCOPE
            ):
                for term, posting in self._block(block).find_from(kind):
                    if term in wanted:
                        found[block.segment_id].append(scope_docs(posting.docs))
        is_one_of = group.terms[0][1] in EXCLUSIVE if group.terms else False
        return {
            segment_id: _any_of(sets, self._doc_counts[segment_id] if is_one_of else None)
            for segment_id, sets in found.items()
            if sets
        }

    def _token(self, token: "Token", live: dict[int, DocSet]) -> dict[int, DocSet]:
        if token.is_prefix:
            return self._prefixed(token.text, live)
        term = token.text[:TERM_MAX]
        found: dict[int, DocSet] = {}
        for read in self._find_blocks(live, (term,)):
            posting = self._block(read).find(term)
            if posting is not None:
                found[read.segment_id] = posting.docs
                self._postings[read.segment_id, term] = posting
                self._block_ids[read.segment_id, term] = read.block_id
        return found

    def _prefixed(self, prefix: str, live: dict[int, DocSet]) -> dict[int, DocSet]:
        found: dict[int, list[Sequence[int]]] = {segment_id: [] for segment_id in live}
        # What another alternative finds is asked for too, when it is ranked.
        is_alone = len(self._plan.query.words.nodes) == 1
        within = {segment_id: bounds(docs) if is_alone else (0, DOC_MAX) for segment_id, docs in live.items()}
        begin = prefix[:TERM_MAX]
        for read in search.find_blocks_between(
            self._tx, list(live), term=begin, term_end=begin + "\U0010ffff"
        ):
            docs = self._block(read).docs_from(begin, within=within[read.segment_id])
            found[read.segment_id].append(docs)
        heaps: dict[int, DocSet] = {}
        for segment_id, parts in found.items():
            among = live[segment_id]
            is_narrow = is_alone and isinstance(among, (Runs, array)) and len(among) < sum(map(len, parts))
            heap = Heap(parts, among=among if is_narrow else None)
            heaps[segment_id] = self._prefixes[segment_id, prefix] = heap
        return heaps

    def _phrase(self, words: Words, live: dict[int, DocSet]) -> dict[int, DocSet]:
        """Return the documents, which hold all tokens, in which these may stand in order."""
        whole = words.key_tokens[:-1] if words.prefix else words.key_tokens
        left: dict[int, DocSet] = {}
        for segment_id, docs in live.items():
            standing = []
            for offset, token in whole:
                place = (segment_id, token[:TERM_MAX])
                block_id = self._block_ids[place]
                standing.append(Standing(offset, self._postings[place], block_id=block_id))
                if self._doc_counts[segment_id] <= SMALL:
                    self._small_blocks.add(block_id)
            left[segment_id] = passing(docs, Phrase(standing, read=self._read_positions))
        return left

    def _read_positions(self, block_ids: Sequence[int]) -> dict[int, bytes]:
        missing = set(block_ids) - self._positions.keys()
        if not missing.isdisjoint(self._small_blocks):
            missing |= self._small_blocks - self._positions.keys()
            self._small_blocks.clear()
        self._positions.update(search.find_positions(self._tx, missing))
        return self._positions

    def _block(self, found: search.FoundBlock) -> Block:
        block = self._blocks.get(found.block_id)
        if block is None:
            block = self._blocks[found.block_id] = Block(found.data)
        return block


@dataclass(slots=True)
class _Walk:
    """How far one segment's documents were walked, and the next ones with their keys."""

    segment: SegmentRow
    docs: Iterator[int]
    ahead: deque[Candidate] = field(default_factory=deque)
    stride: int = 0
    """How many documents were read the last time."""
    is_at_end: bool = False
    is_next: bool = False
    """Whether it was its turn when it was put among the others: then its first document is the newest of all."""


def _any_of(sets: Sequence[Sequence[int] | Runs], doc_count: int | None) -> DocSet:
    """Return the union of sets that have nothing in common, of a segment of ``doc_count`` documents.

    Whoever may see everything in a segment is not asked document by document.
    """
    if doc_count is not None and sum(map(len, sets)) == doc_count:
        return everything(doc_count)
    return AnyOf(sets) if len(sets) > 1 else sets[0]


def _apply(live: dict[int, DocSet], found: dict[int, DocSet], *, negated: bool) -> dict[int, DocSet]:
    """Return the live documents that were found, or with ``negated`` those that were not; empty segments go."""
    left: dict[int, DocSet] = {}
    for segment_id, docs in live.items():
        given = found.get(segment_id, ())
        # A range is a whole segment here.
        if isinstance(docs, range) and not negated:
            kept = given
        elif isinstance(given, range) and not negated:
            kept = docs
        else:
            kept = subtract(docs, given) if negated else intersect(docs, given)
        if len(kept):
            left[segment_id] = kept
    return left
