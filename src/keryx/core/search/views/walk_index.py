"""Reads the candidates of a query from the index, newest first.

The index only proposes candidates: at least all documents that match. The text decides. Segments are read newest
first, and only as far as the caller asks for more.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import islice
from typing import Final, TypeAlias

from keryx.core.search.rules.document_sets import (
    DocumentSet,
    everything,
    filtered,
    intersect,
    subtract,
    unite,
)
from keryx.core.search.rules.index_format import TERM_MAX
from keryx.core.search.rules.query import Negation, Phrase
from keryx.core.search.rules.scope_terms import session_mark
from keryx.core.search.tables.index_state import find_position
from keryx.core.search.tables.segments import SegmentRow, list_marked, list_segments
from keryx.core.search.views.query_plan import (
    BEFORE_ALL,
    PAGE,
    Condition,
    DocumentKey,
    QueryPlan,
    ScopeCondition,
    SegmentStages,
    TokenCondition,
    lookup_terms,
)
from keryx.core.search.views.read_index import ColumnReader, PostingReader, SegmentSets
from keryx.store.database import ReadTx

PRELOAD_MAX: Final = 4_096
"""In segments with up to this many documents, all terms are looked up at once; in larger ones a term can be long."""


def _intersect(live: SegmentSets, found: SegmentSets) -> SegmentSets:
    left: SegmentSets = {}
    for segment_id, docs in live.items():
        given = found.get(segment_id, ())
        # A range is a whole segment here.
        if isinstance(docs, range):
            both = given
        else:
            both = docs if isinstance(given, range) else intersect(docs, given)
        if len(both):
            left[segment_id] = both
    return left


def _subtract(live: SegmentSets, found: SegmentSets) -> SegmentSets:
    left = {segment_id: subtract(docs, found.get(segment_id, ())) for segment_id, docs in live.items()}
    return {segment_id: docs for segment_id, docs in left.items() if len(docs)}


READ_MIN: Final = 4
"""Candidates whose keys are read at once, at least. The first read gets as many as a page still lacks."""
READ_MAX: Final = 2_048

Candidate: TypeAlias = tuple[DocumentKey, int, int]
"""A document that may match: (key, segment, number in it). A plain tuple, because ranking compares thousands."""


class IndexReader:
    """The index as one query reads it; data that was read is kept until the query ends."""

    def __init__(self, tx: ReadTx, plan: QueryPlan) -> None:
        self._plan = plan
        # An index of another format is empty to queries; the indexer rebuilds it.
        segments = [] if find_position(tx) is None else list_segments(tx)
        if plan.session_term is not None:
            marked = list_marked(tx, session_mark(plan.session_term))
            segments = [each for each in segments if each.segment_id in marked]
        self._segments = [each for each in segments if _overlaps(each, plan)]
        self.columns = ColumnReader(tx)
        self.postings = PostingReader(
            tx,
            {each.segment_id: each.doc_count for each in segments},
            has_one_alternative=len(plan.query.words.nodes) == 1,
        )
        self._alternatives = plan.alternatives()
        self._terms = {
            term for conditions in self._alternatives for each in conditions for term in lookup_terms(each)
        }

    def newest(self) -> Iterator[Candidate]:
        """Yield all candidates, newest first."""
        stages = SegmentStages(self._segments)
        heap: list[tuple[DocumentKey, int, _SegmentWalk]] = []
        count = 0
        while heap or stages.last_at is not None:
            if stages.last_at is not None and (not heap or -heap[0][0][0] <= stages.last_at):
                for walk in self._begin(stages.take(count)):
                    # No key has been read yet: the walk is queued at the newest time it can have.
                    heappush(heap, ((-walk.segment.last_at, BEFORE_ALL), walk.segment.segment_id, walk))
                continue
            _, _, walk = heappop(heap)
            others = -heap[0][0][0] if heap else BEFORE_ALL
            if stages.last_at is not None:
                others = max(others, stages.last_at)
            while walk.ahead and (walk.ahead[0][0][0] > others or walk.is_next):
                walk.is_next = False
                count += 1
                yield walk.ahead.popleft()
            if not walk.ahead and not walk.is_at_end:
                self._read_ahead(walk, count)
            if walk.ahead:
                # Continues here, or waits until the other walks have reached this time.
                at, id_ = walk.ahead[0][0]
                walk.is_next = True
                heappush(heap, ((-at, -id_), walk.segment.segment_id, walk))

    def _begin(self, stage: Sequence[SegmentRow]) -> Iterator["_SegmentWalk"]:
        found = self._evaluate(stage)
        for segment in stage:
            if segment.segment_id in found:
                self.columns.expect(segment)
        for segment in stage:
            if segment.segment_id in found:
                docs = self._before_end(segment, found[segment.segment_id])
                yield _SegmentWalk(segment, iter(reversed(docs)))

    def _evaluate(self, segments: Sequence[SegmentRow]) -> SegmentSets:
        """Return the documents that may match, for each segment that has any."""
        small = [each.segment_id for each in segments if each.doc_count <= PRELOAD_MAX]
        self.postings.preload(small, self._terms)
        found = [self._evaluate_all(conditions, segments) for conditions in self._alternatives]
        united: SegmentSets = {}
        for segment in segments:
            docs = unite([each[segment.segment_id] for each in found if segment.segment_id in each])
            if len(docs):
                united[segment.segment_id] = docs
        return united

    def _evaluate_all(self, conditions: Sequence[Condition], segments: Sequence[SegmentRow]) -> SegmentSets:
        live: SegmentSets = {each.segment_id: everything(each.doc_count) for each in segments}
        for condition in conditions:
            live = self._apply(condition, live)
            if not live:
                break
        return live

    def _apply(self, condition: Condition, live: SegmentSets) -> SegmentSets:
        """Return the live documents that may satisfy the condition."""
        match condition:
            case ScopeCondition():
                found = self.postings.scope(condition, list(live))
                return _subtract(live, found) if condition.negated else _intersect(live, found)
            case TokenCondition(text=text, is_prefix=True):
                return _intersect(live, self.postings.prefix(text, live))
            case TokenCondition(text=text):
                return _intersect(live, self.postings.token(text, live))
            case Phrase():
                return {
                    segment_id: filtered(docs, self.postings.phrase_filter(condition, segment_id))
                    for segment_id, docs in live.items()
                }
            case Negation(node):
                # Only exact results may be subtracted: those of a whole token that the index keeps uncut.
                token = node.tokens[0][1]
                if len(node.tokens) > 1 or node.prefix or len(token) >= TERM_MAX:
                    return live
                return _subtract(live, self.postings.token(token, live))

    def _before_end(self, segment: SegmentRow, docs: DocumentSet) -> DocumentSet:
        before = self._plan.before
        if before is None or segment.last_at < before[0]:
            return docs
        return intersect(docs, range(self.columns.count_before(segment, before)))

    def _read_ahead(self, walk: "_SegmentWalk", count: int) -> None:
        missing = PAGE - count if count < PAGE else PAGE
        walk.read_size = min(4 * walk.read_size, READ_MAX) or max(READ_MIN, missing)
        docs = list(islice(walk.docs, walk.read_size))
        walk.is_at_end = len(docs) < walk.read_size
        segment_id = walk.segment.segment_id
        keys = self.columns.keys(segment_id, docs)
        after = self._plan.after
        if after is not None and keys and keys[-1][0] < after:
            keys = [key for key in keys if key[0] >= after]
            walk.is_at_end = True
        walk.ahead.extend([(key, segment_id, doc) for key, doc in zip(keys, docs, strict=False)])


@dataclass(slots=True)
class _SegmentWalk:
    """The documents of one segment that are left to read, and the next ones with their keys."""

    segment: SegmentRow
    docs: Iterator[int]
    ahead: deque[Candidate] = field(default_factory=deque)
    read_size: int = 0
    """How many documents the last read asked for."""
    is_at_end: bool = False
    is_next: bool = False
    """Whether the walk is queued by the key of its next document: at its turn no other key is newer."""


def _overlaps(segment: SegmentRow, plan: QueryPlan) -> bool:
    """Return whether a segment may hold documents between the bounds of the plan."""
    before, after = plan.before, plan.after
    return (before is None or segment.first_at <= before[0]) and (after is None or segment.last_at >= after)
