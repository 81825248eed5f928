"""Pages of matches, newest first: from the index as far as it goes, and from the rows that are newer."""

from collections.abc import Iterator
from heapq import merge
from itertools import islice
from typing import Final, NamedTuple

from keryx.core.conversations.rules.event import START
from keryx.core.search.rules.query import Query
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
