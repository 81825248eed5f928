"""Evaluates the conditions of a query in segments.

The result is a superset: it holds at least the documents that match. The text decides.
"""

from collections.abc import Sequence
from typing import Final

from keryx.core.search.rules.index_format import TERM_MAX
from keryx.core.search.rules.query import Negation, Phrase
from keryx.core.search.rules.set_operations import everything, filtered, intersect, subtract, unite
from keryx.core.search.tables.segments import SegmentRow
from keryx.core.search.views.query_plan import Condition, ScopeCondition, TokenCondition, lookup_terms
from keryx.core.search.views.read_postings import PostingReader, SegmentSets

PRELOAD_MAX: Final = 4_096
"""In segments with up to this many documents, all terms are looked up at once; in larger ones a term can be long."""


class QueryEvaluator:
    """The alternatives of one query, evaluated in one stage of segments after another."""

    def __init__(self, alternatives: Sequence[Sequence[Condition]], postings: PostingReader) -> None:
        self._alternatives = alternatives
        self._postings = postings
        self._terms = {
            term for conditions in alternatives for each in conditions for term in lookup_terms(each)
        }

    def evaluate(self, segments: Sequence[SegmentRow]) -> SegmentSets:
        """Return the documents that may match, for each segment that has any."""
        small = [each.segment_id for each in segments if each.doc_count <= PRELOAD_MAX]
        self._postings.preload(small, self._terms)
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
            live = self._evaluate(condition, live)
            if not live:
                break
        return live

    def _evaluate(self, condition: Condition, live: SegmentSets) -> SegmentSets:
        """Return the live documents that may satisfy the condition."""
        match condition:
            case ScopeCondition():
                found = self._postings.scope(condition, list(live))
                return _subtract(live, found) if condition.negated else _intersect(live, found)
            case TokenCondition(text=text, is_prefix=True):
                return _intersect(live, self._postings.prefix(text, live))
            case TokenCondition(text=text):
                return _intersect(live, self._postings.token(text, live))
            case Phrase():
                return {
                    segment_id: filtered(docs, self._postings.phrase_filter(condition, segment_id))
                    for segment_id, docs in live.items()
                }
            case Negation(node):
                # Only exact results may be subtracted: those of a whole token that the index keeps uncut.
                token = node.tokens[0][1]
                if len(node.tokens) > 1 or node.prefix or len(token) >= TERM_MAX:
                    return live
                return _subtract(live, self._postings.token(token, live))


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
