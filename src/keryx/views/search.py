"""Search everything a person may see: newest or best first, grouped by session, with a reason when nothing is found.

The answer is current: the index is read as far as it goes, and what is newer is scanned with the same matcher. A query
never writes.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from heapq import merge
from itertools import chain, islice
from typing import Final, Literal, TypedDict, Unpack

from keryx.domain.event import START
from keryx.domain.postings import COUNT_MAX
from keryx.domain.search_match import Text
from keryx.domain.search_query import Query, Words, parse_query
from keryx.errors import InvalidValue
from keryx.store.database import ReadTx
from keryx.store.tables import search as tables
from keryx.values import dataclass
from keryx.views.search_index import Candidate, IndexReader
from keryx.views.search_plan import Key
from keryx.views.search_result import Hit, Neighbour, SessionHits, Snippet, group
from keryx.views.search_scope import Judge, Match, Scope, make_plan, scope_of

__all__ = ["Hit", "How", "Neighbour", "Order", "SearchResult", "SessionHits", "Snippet", "search"]

Order = Literal["newest", "best"]
HITS_MAX: Final = 200
NEIGHBOURS_MAX: Final = 5
TAIL_MAX: Final = 2_000
"""Facts newer than the index that a query scans."""
RANKED_MAX: Final = 5_000
PHRASES_MAX: Final = 500
"""The same where each of them costs a look at the places of its words."""
JUDGED_MAX: Final = 4_000
"""Candidates that one answer looks at; reached only where filters leave almost nothing of very many."""
CUT_SHORT: Final = "The filters left little of very much; ask for the next page to look further back."
JUDGED_AT_ONCE: Final = 25
JUDGED_MIN: Final = 8
HIDDEN_MAX: Final = 20
BEHIND_MAX: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The answer to a search."""

    sessions: tuple[SessionHits, ...] = ()
    next: str | None = None
    """Give it as ``after`` for the next page; None on the last one."""
    not_indexed: int = 0
    """New facts that neither the index nor the scan has reached yet."""
    ranked_among: int | None = None
    """How many of the newest matches were ranked, where there were more."""
    notes: tuple[str, ...] = ()
    nothing_because: tuple[str, ...] = ()
    """What hid the matches, where nothing was found."""


@dataclass(frozen=True, slots=True)
class _Page:
    found: list[Match]
    next: str | None
    not_indexed: int = 0
    ranked_among: int | None = None
    is_cut_short: bool = False


class How(TypedDict, total=False):
    """How a search is narrowed, ordered and shown."""

    session_id: str | None
    source: str | None
    audience_id: int | None
    """Only what was said to this audience: for an answer that others read as well."""
    asking: tuple[str, int] | None
    """The session and the turn in which this is asked; its own words are left out."""
    order: Order
    neighbours: int
    zone: tzinfo
    """Where dates in the text are read; UTC if not given."""


def search(
    tx: ReadTx, text: str, *, person_id: int, limit: int = 20, after: str | None = None, **how: Unpack[How]
) -> SearchResult:
    """Return what answers ``text`` among all that the person may see, ``limit`` hits at most.

    Newest first, with one neighbour on each side, unless ``how`` says otherwise; ``after`` is the ``next`` of the
    page before.
    """
    query = parse_query(text, now=tx.now, zone=how.get("zone", UTC))
    if query.is_empty:
        return SearchResult(notes=query.notes)
    scope = scope_of(
        tx,
        person_id,
        session_id=how.get("session_id"),
        platform=how.get("source"),
        audience_id=how.get("audience_id"),
        asking=how.get("asking"),
    )
    limit = max(1, min(limit, HITS_MAX))
    page = _page(tx, query, scope, order=how.get("order", "newest"), limit=limit, after=after)
    neighbours = max(0, min(how.get("neighbours", 1), NEIGHBOURS_MAX))
    return SearchResult(
        sessions=group(tx, query, page.found, neighbours=neighbours),
        next=page.next,
        not_indexed=page.not_indexed,
        ranked_among=page.ranked_among,
        notes=(*query.notes, CUT_SHORT) if page.is_cut_short else query.notes,
        nothing_because=() if page.found or page.next or after else tuple(_hidden(tx, query, scope)),
    )


def _page(tx: ReadTx, query: Query, scope: Scope, *, order: Order, limit: int, after: str | None) -> _Page:
    kind, numbers = _parse_cursor(after)
    if after is not None and kind != order:
        raise InvalidValue(
            f"cursor {after[:40]!r}: it belongs to a search in another order; start without one"
        )
    if order == "best":
        return _best(tx, query, scope, limit=limit, skip=numbers[0])
    return _newest(tx, query, scope, limit=limit, before=None if after is None else (numbers[0], numbers[1]))


def _parse_cursor(text: str | None) -> tuple[str, list[int]]:
    if text is None:
        return "", [0, 0]
    kind, _, rest = text.partition(":")
    try:
        numbers = [int(each) for each in rest.split(".")]
    except ValueError:
        numbers = []
    if (kind, len(numbers)) not in (("newest", 2), ("best", 1)):
        raise InvalidValue(
            f"search cursor {text[:40]!r}: use the one that a search answer gave, or start without one"
        )
    return kind, numbers


def _newest(tx: ReadTx, query: Query, scope: Scope, *, limit: int, before: Key | None) -> _Page:
    judge = Judge(tx, query, scope)
    tail, not_indexed = _tail(tx, judge)
    newer = [match for match in tail if before is None or match.key < before]
    older = _Judged(judge, IndexReader(tx, make_plan(tx, query, scope, before=before)).newest())
    found = list(
        islice(merge(newer, older.matches(limit + 1), key=lambda match: match.key, reverse=True), limit + 1)
    )
    last = found[limit - 1].key if len(found) > limit else older.stopped_at
    cursor = None if last is None else "newest:{}.{}".format(*last)
    return _Page(found[:limit], cursor, not_indexed, is_cut_short=last is not None and len(found) <= limit)


@dataclass(slots=True)
class _Judged:
    """Candidates on their way through the judge; ``stopped_at`` is where it was tired of looking."""

    judge: Judge
    candidates: Iterator[Candidate]
    stopped_at: Key | None = None

    def matches(self, first: int) -> Iterator[Match]:
        """Yield the candidates that answer, judging ``first`` of them at once, then as many as seem to be needed."""
        size, looked, found = first, 0, 0
        while batch := [key for key, _, _ in islice(self.candidates, size)]:
            matches = self.judge.judge([id_ for _, id_ in batch])
            yield from matches
            looked += len(batch)
            found += len(matches)
            if looked >= JUDGED_MAX:
                self.stopped_at = batch[-1]
                return
            missing = 2 * max(1, first - found)
            size = min(1_000, max(JUDGED_MIN, missing * looked // found)) if found else min(2 * size, 1_000)


def _tail(tx: ReadTx, judge: Judge) -> tuple[list[Match], int]:
    """Return what answers among the facts newer than the index, newest first, and how many facts were not read."""
    position = tables.covered(tx) or START
    facts = tables.list_tail(tx, after=position, limit=TAIL_MAX)
    ids = [subject for kind, _, subject in facts if kind == "message" and subject is not None]
    cards = {
        session_id
        for kind, session_id, _ in facts
        if session_id and kind in ("session.opened", "session.changed")
    }
    found = sorted([*judge.judge(ids), *judge.judge_cards(cards)], key=lambda match: match.key, reverse=True)
    if len(facts) < TAIL_MAX:
        return found, 0
    return found, tables.count_new(tx, after=position, limit=BEHIND_MAX) - len(facts)


def _best(tx: ReadTx, query: Query, scope: Scope, *, limit: int, skip: int) -> _Page:
    judge = Judge(tx, query, scope)
    tail, not_indexed = _tail(tx, judge)
    reader = IndexReader(tx, make_plan(tx, query, scope, before=None))
    leaves = list(dict.fromkeys(query.leaves()))
    most = PHRASES_MAX if any(len(words.key_tokens) > 1 for words in leaves) else RANKED_MAX
    older = list(islice(reader.newest(), most + 1))
    newer: list[Candidate] = [(match.key, 0, number) for number, match in enumerate(tail)]
    among = sorted([*newer, *older], reverse=True) if newer else older
    is_cut = len(among) > most
    ranked = _rank(among[:most], leaves, reader, tail)
    found = list(islice(chain.from_iterable(_verified(judge, ranked, tail)), skip, skip + limit + 1))
    cursor = f"best:{skip + limit}" if len(found) > limit else None
    return _Page(found[:limit], cursor, not_indexed, most if is_cut else None)


def _verified(judge: Judge, ranked: Sequence[Candidate], tail: Sequence[Match]) -> Iterator[list[Match]]:
    for begin in range(0, len(ranked), JUDGED_AT_ONCE):
        batch = ranked[begin : begin + JUDGED_AT_ONCE]
        judged = {
            match.key: match for match in judge.judge([id_ for (_, id_), segment, _ in batch if segment])
        }
        known = (judged.get(key) if segment else tail[doc] for key, segment, doc in batch)
        yield [match for match in known if match is not None]


def _rank(
    among: Sequence[Candidate], leaves: Sequence[Words], reader: IndexReader, tail: Sequence[Match]
) -> list[Candidate]:
    """Return the candidates, those that answer best first (BM25), the newest first among equals.

    The statistics are those of the candidates alone, so that the order does not depend on how the index is cut.
    """
    by_segment: dict[int, list[int]] = {}
    for number, (_, segment_id, _) in enumerate(among):
        by_segment.setdefault(segment_id, []).append(number)
    counts = [[0] * len(among) for _ in leaves]
    lengths = [0] * len(among)
    for segment_id, numbers in by_segment.items():
        docs = [among[number][2] for number in numbers]
        of_docs = (
            reader.lengths_of(segment_id, docs) if segment_id else [len(tail[doc].text.words) for doc in docs]
        )
        for number, length in zip(numbers, of_docs, strict=True):
            lengths[number] = length
        for leaf, column in zip(leaves, counts, strict=True):
            found = (
                reader.counts_of(leaf, segment_id, docs)
                if segment_id
                else [_count(leaf, tail[doc].text) for doc in docs]
            )
            for number, count in zip(numbers, found, strict=True):
                column[number] = count
    scores = _scores(counts, lengths)
    return [among[number] for number in sorted(range(len(among)), key=lambda number: -scores[number])]


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


def _count(leaf: Words, text: Text) -> int:
    """Return how often a leaf stands in the text, counted as the index counts."""
    last = len(leaf.key_tokens) - 1
    counts = []
    for index, (_, token) in enumerate(leaf.key_tokens):
        if leaf.prefix and index == last:
            counts.append(min(1, len(text.positions_from(token))))
        else:
            counts.append(min(COUNT_MAX, len(text.positions(token))))
    return min(counts)


def _hidden(tx: ReadTx, query: Query, scope: Scope) -> Iterator[str]:
    """Yield which filter or scope hid how many matches; never looks beyond what the person may see."""
    relaxed: list[tuple[str, Query, Scope]] = [
        (
            str(each),
            replace(query, filters=tuple(other for other in query.filters if other is not each)),
            scope,
        )
        for each in query.filters
    ]
    if scope.session_id is not None:
        relaxed.append(("searching this session only", query, replace(scope, session_id=None)))
    if scope.platform is not None:
        relaxed.append((f"searching {scope.platform} only", query, replace(scope, platform=None)))
    if len(relaxed) > 1:
        wide = replace(scope, session_id=None, platform=None)
        relaxed.append(("all of these together", replace(query, filters=()), wide))
    shown = False
    for what, wider, within in relaxed:
        if wider.is_empty or (shown and what == "all of these together"):
            continue
        count = len(_newest(tx, wider, within, limit=HIDDEN_MAX, before=None).found)
        if count:
            shown = True
            number = f"{HIDDEN_MAX} or more matches are" if count == HIDDEN_MAX else f"{count} matches are"
            yield f"{'1 match is' if count == 1 else number} hidden by {what}."
