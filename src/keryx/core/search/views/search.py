"""Searches everything that a person may see: newest or best first, grouped by session, with a reason for no hits.

The answer is current: the index is read as far as it goes, and newer rows are scanned with the same rules. A query
never writes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import Final, Literal, TypedDict, Unpack

from keryx.core.people.tables.people import list_audiences
from keryx.core.search.rules.parse_query import parse_query
from keryx.core.search.rules.query import Query
from keryx.core.search.rules.snippet import Snippet
from keryx.core.search.views.result import Hit, Neighbour, SessionHits, group_hits
from keryx.core.search.views.scope import Scope
from keryx.core.search.views.search_pages import MatchPage, best_page, newest_page
from keryx.errors import InvalidValue
from keryx.store.database import ReadTx

__all__ = ["Hit", "Neighbour", "Order", "SearchOptions", "SearchResult", "SessionHits", "Snippet", "search"]

Order = Literal["newest", "best"]
HITS_MAX: Final = 200
NEIGHBOURS_MAX: Final = 5
HIDDEN_MAX: Final = 20
"""Hidden matches are counted up to this number."""
CUT_SHORT: Final = "The filters exclude most matches; ask for the next page to look further back."
_TOGETHER: Final = "all of these together"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The answer to a search."""

    sessions: tuple[SessionHits, ...] = ()
    next: str | None = None
    """The ``after`` of the next page; None on the last page."""
    not_indexed: int = 0
    """How many new facts neither the index nor the scan has reached yet."""
    ranked_among: int | None = None
    """How many of the newest matches were ranked, if there were more."""
    notes: tuple[str, ...] = ()
    nothing_because: tuple[str, ...] = ()
    """What hid the matches, if nothing was found."""


class SearchOptions(TypedDict, total=False):
    """How to narrow, order and show a search."""

    session_id: str | None
    source: str | None
    audience_id: int | None
    """Searches only the sessions of this audience: for an answer that others read too."""
    asking: tuple[str, int] | None
    """The session and the turn that search; the turn's own words are left out."""
    order: Order
    neighbours: int
    zone: tzinfo
    """The time zone of dates in the text; by default UTC."""


def search(
    tx: ReadTx,
    text: str,
    *,
    person_id: int,
    limit: int = 20,
    after: str | None = None,
    **options: Unpack[SearchOptions],
) -> SearchResult:
    """Return what matches ``text`` among everything that the person may see, at most ``limit`` hits.

    By default the newest come first, with one neighbour on each side. ``after`` is the ``next`` of the page before.
    """
    query = parse_query(text, now=tx.now, zone=options.get("zone", UTC))
    if query.is_empty:
        return SearchResult(notes=query.notes)
    audiences, audience_id = frozenset(list_audiences(tx, person_id)), options.get("audience_id")
    scope = Scope(
        audiences=audiences if audience_id is None else audiences & {audience_id},
        session_id=options.get("session_id"),
        platform=options.get("source"),
        asking=options.get("asking"),
    )
    limit = max(1, min(limit, HITS_MAX))
    page = _page(tx, query, scope, order=options.get("order", "newest"), limit=limit, after=after)
    neighbours = max(0, min(options.get("neighbours", 1), NEIGHBOURS_MAX))
    return SearchResult(
        sessions=group_hits(tx, query, page.found, neighbours=neighbours),
        next=page.next,
        not_indexed=page.not_indexed,
        ranked_among=page.ranked_among,
        notes=(*query.notes, CUT_SHORT) if page.is_cut_short else query.notes,
        nothing_because=() if page.found or page.next or after else tuple(_hidden(tx, query, scope)),
    )


def _page(
    tx: ReadTx, query: Query, scope: Scope, *, order: Order, limit: int, after: str | None
) -> MatchPage:
    kind, numbers = _parse_cursor(after)
    if after is not None and kind != order:
        raise InvalidValue(
            f"cursor {after[:40]!r}: it belongs to a search in another order; start without one"
        )
    if order == "best":
        return best_page(tx, query, scope, limit=limit, skip=numbers[0])
    before = None if after is None else (numbers[0], numbers[1])
    return newest_page(tx, query, scope, limit=limit, before=before)


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


def _hidden(tx: ReadTx, query: Query, scope: Scope) -> Iterator[str]:
    """Yield which filter or scope hid how many matches, as far as the person may see these."""
    is_explained = False
    for what, wider, within in _relaxations(query, scope):
        if wider.is_empty or (is_explained and what == _TOGETHER):
            continue
        count = len(newest_page(tx, wider, within, limit=HIDDEN_MAX, before=None).found)
        if count:
            is_explained = True
            number = f"{HIDDEN_MAX} or more matches are" if count == HIDDEN_MAX else f"{count} matches are"
            yield f"{'1 match is' if count == 1 else number} hidden by {what}."


def _relaxations(query: Query, scope: Scope) -> list[tuple[str, Query, Scope]]:
    """Return what can hide matches, each with the query and the scope that do without it."""
    relaxed: list[tuple[str, Query, Scope]] = []
    for each in query.filters:
        others = tuple(other for other in query.filters if other is not each)
        relaxed.append((str(each), replace(query, filters=others), scope))
    if scope.session_id is not None:
        relaxed.append(("searching this session only", query, replace(scope, session_id=None)))
    if scope.platform is not None:
        relaxed.append((f"searching {scope.platform} only", query, replace(scope, platform=None)))
    if len(relaxed) > 1:
        widest = replace(scope, session_id=None, platform=None)
        relaxed.append((_TOGETHER, replace(query, filters=()), widest))
    return relaxed
