"""Pages of matches, best first.

BM25 over the newest candidates. The statistics are those of the candidates alone, so the order does not depend on how
the index is divided into segments.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Final

from keryx.core.search.rules.index_format import COUNT_MAX
from keryx.core.search.rules.matching import TokenizedText
from keryx.core.search.rules.query import Phrase, Query
from keryx.core.search.views.match_rows import Match, RowMatcher
from keryx.core.search.views.scope import Scope, make_plan
from keryx.core.search.views.search_pages import MatchPage, match_unindexed
from keryx.core.search.views.walk_index import Candidate, IndexReader
from keryx.store.database import ReadTx

RANKED_MAX: Final = 5_000
"""How many of the newest candidates are ranked."""
PHRASES_MAX: Final = 500
"""The same if the query has phrases: each of their candidates needs its positions read."""
CHECKED_AT_ONCE: Final = 25
_UNINDEXED: Final = 0
"""Stands for the segment of a candidate that is not indexed; its number is its index in the list of such matches."""


def best_page(tx: ReadTx, query: Query, scope: Scope, *, limit: int, skip: int) -> MatchPage:
    """Return the best matches after the first ``skip``."""
    matcher = RowMatcher(tx, query, scope)
    unindexed, not_indexed = match_unindexed(tx, matcher)
    reader = IndexReader(tx, make_plan(tx, query, scope, before=None))
    phrases = list(dict.fromkeys(query.positive_phrases()))
    most = PHRASES_MAX if any(len(phrase.lookup_tokens) > 1 for phrase in phrases) else RANKED_MAX
    indexed = list(islice(reader.newest(), most + 1))
    newer: list[Candidate] = [(match.key, _UNINDEXED, number) for number, match in enumerate(unindexed)]
    candidates = sorted([*newer, *indexed], reverse=True) if newer else indexed
    ranked = _rank(candidates[:most], phrases, reader, unindexed)
    found = list(islice(chain.from_iterable(_check(matcher, ranked, unindexed)), skip, skip + limit + 1))
    cursor = f"best:{skip + limit}" if len(found) > limit else None
    return MatchPage(found[:limit], cursor, not_indexed, most if len(candidates) > most else None)


def _check(
    matcher: RowMatcher, ranked: Sequence[Candidate], unindexed: Sequence[Match]
) -> Iterator[list[Match]]:
    """Yield the ranked candidates that match, some at a time."""
    for begin in range(0, len(ranked), CHECKED_AT_ONCE):
        batch = ranked[begin : begin + CHECKED_AT_ONCE]
        ids = [id_ for (_, id_), segment, _ in batch if segment != _UNINDEXED]
        matched = {match.key: match for match in matcher.match_documents(ids)}
        known = (
            unindexed[number] if segment == _UNINDEXED else matched.get(key) for key, segment, number in batch
        )
        yield [match for match in known if match is not None]


def _rank(
    candidates: Sequence[Candidate],
    phrases: Sequence[Phrase],
    reader: IndexReader,
    unindexed: Sequence[Match],
) -> list[Candidate]:
    """Return the candidates, the best first, and the newest first among equals."""
    by_segment: dict[int, list[int]] = {}
    for index, (_, segment_id, _) in enumerate(candidates):
        by_segment.setdefault(segment_id, []).append(index)
    counts = [[0] * len(candidates) for _ in phrases]
    lengths = [0] * len(candidates)
    for segment_id, indexes in by_segment.items():
        docs = [candidates[index][2] for index in indexes]
        texts = [unindexed[doc].text for doc in docs] if segment_id == _UNINDEXED else []
        found = [len(text.words) for text in texts] or reader.columns.lengths(segment_id, docs)
        for index, length in zip(indexes, found, strict=True):
            lengths[index] = length
        for phrase, column in zip(phrases, counts, strict=True):
            found = [_count(phrase, text) for text in texts] or reader.postings.counts(
                phrase, segment_id, docs
            )
            for index, count in zip(indexes, found, strict=True):
                column[index] = count
    scores = _scores(counts, lengths)
    return [candidates[index] for index in sorted(range(len(candidates)), key=lambda index: -scores[index])]


def _scores(counts: Sequence[Sequence[int]], lengths: Sequence[int]) -> list[float]:
    total = len(lengths)
    average = max(1.0, sum(lengths) / max(1, total))
    norms = {length: 1.2 * (0.25 + 0.75 * length / average) for length in set(lengths)}
    scores = [0.0] * total
    for column in counts:
        holding = total - column.count(0)
        weight = 2.2 * math.log(1 + (total - holding + 0.5) / (holding + 0.5))
        scores = [
            score + weight * count / (count + norms[length])
            for score, count, length in zip(scores, column, lengths, strict=True)
        ]
    return scores


def _count(phrase: Phrase, text: TokenizedText) -> int:
    """Return how often a phrase occurs in a text, counted as ``PostingReader.counts`` counts."""
    last = len(phrase.lookup_tokens) - 1
    counts = []
    for index, (_, token) in enumerate(phrase.lookup_tokens):
        if phrase.prefix and index == last:
            counts.append(min(1, len(text.prefix_positions(token))))
        else:
            counts.append(min(COUNT_MAX, len(text.positions(token))))
    return min(counts)
