"""Pages of matches from the index and from the rows that are newer: newest first, or best first.

Best first is BM25 over the newest candidates. The statistics are those of the candidates alone, so the order does not
depend on how the index is divided into segments.
"""

import math
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import chain, islice
from typing import Final, NamedTuple

from keryx.core.conversations.rules.event import START
from keryx.core.search.rules.index_format import COUNT_MAX
from keryx.core.search.rules.matching import TokenizedText
from keryx.core.search.rules.query import Phrase, Query
from keryx.core.search.tables.index_state import find_position
from keryx.core.search.views.facts_to_index import count_new, list_newest
from keryx.core.search.views.match_rows import Match, RowMatcher
from keryx.core.search.views.query_plan import DocumentKey
from keryx.core.search.views.scope import Scope, make_plan
from keryx.core.search.views.walk_index import Candidate, IndexReader
from keryx.store.database import ReadTx

NEW_FACTS_MAX: Final = 2_000
"""Facts newer than the index that a query scans."""
COUNTED_MAX: Final = 1_000_000
"""Facts that neither the index nor the scan has reached are counted up to this number."""
CANDIDATES_MAX: Final = 4_000
"""Candidates that one page checks. The limit is reached only if filters exclude almost all of very many candidates."""
CHECKED_MIN: Final = 8
CHECKED_MAX: Final = 1_000
"""Candidates whose rows are read at once, at least and at most."""


class MatchPage(NamedTuple):
    """Some matches, and the cursor of the next page."""

    found: list[Match]
    next: str | None
    not_indexed: int = 0
    ranked_among: int | None = None
    is_cut_short: bool = False
    """Whether the page stopped at ``CANDIDATES_MAX``."""


def newest_page(
    tx: ReadTx, query: Query, scope: Scope, *, limit: int, before: DocumentKey | None
) -> MatchPage:
    """Return the newest matches before a key."""
    matcher = RowMatcher(tx, query, scope)
    unindexed, not_indexed = match_unindexed(tx, matcher)
    newer = [match for match in unindexed if before is None or match.key < before]
    older = _CheckedCandidates(matcher, IndexReader(tx, make_plan(tx, query, scope, before=before)).newest())
    found = list(
        islice(merge(newer, older.matches(limit + 1), key=lambda match: match.key, reverse=True), limit + 1)
    )
    last = found[limit - 1].key if len(found) > limit else older.stopped_at
    cursor = None if last is None else "newest:{}.{}".format(*last)
    return MatchPage(
        found[:limit], cursor, not_indexed, is_cut_short=last is not None and len(found) <= limit
    )


def match_unindexed(tx: ReadTx, matcher: RowMatcher) -> tuple[list[Match], int]:
    """Return the matches among the facts newer than the index, newest first, and how many facts were not scanned."""
    position = find_position(tx) or START
    facts = list_newest(tx, after=position, limit=NEW_FACTS_MAX)
    ids = [subject for kind, _, subject in facts if kind == "message" and subject is not None]
    cards = {
        session_id
        for kind, session_id, _ in facts
        if session_id and kind in ("session.opened", "session.changed")
    }
    matched = [*matcher.match_documents(ids), *matcher.match_cards(cards)]
    found = sorted(matched, key=lambda match: match.key, reverse=True)
    if len(facts) < NEW_FACTS_MAX:
        return found, 0
    return found, count_new(tx, after=position, limit=COUNTED_MAX) - len(facts)


class _CheckedCandidates:
    """Candidates that are checked by their rows; ``stopped_at`` is where the check reached its limit."""

    def __init__(self, matcher: RowMatcher, candidates: Iterator[Candidate]) -> None:
        self._matcher = matcher
        self._candidates = candidates
        self.stopped_at: DocumentKey | None = None

    def matches(self, first: int) -> Iterator[Match]:
        """Yield the candidates that match. Check ``first`` of them at once, then as many as a page seems to need."""
        size, checked, found = first, 0, 0
        while batch := [key for key, _, _ in islice(self._candidates, size)]:
            matches = self._matcher.match_documents([id_ for _, id_ in batch])
            yield from matches
            checked += len(batch)
            found += len(matches)
            if checked >= CANDIDATES_MAX:
                self.stopped_at = batch[-1]
                return
            missing = 2 * max(1, first - found)
            wanted = max(CHECKED_MIN, missing * checked // found) if found else 2 * size
            size = min(CHECKED_MAX, wanted)


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
