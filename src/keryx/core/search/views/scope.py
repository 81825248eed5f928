"""What a search may show: whose sessions, and which of them.

The index narrows its candidates to that as far as scope terms can express it. ``RowMatcher`` checks every candidate
again by its rows.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from keryx.clock import Micros
from keryx.core.search.rules.filters import same_name
from keryx.core.search.rules.query import Query, QueryFilter
from keryx.core.search.rules.scope_terms import platform_token, scope_term
from keryx.core.search.rules.tokens import tokenize
from keryx.core.search.views import searched_rows
from keryx.core.search.views.query_plan import BEFORE_ALL, DocumentKey, QueryPlan, ScopeCondition
from keryx.core.search.views.searched_rows import SessionRow
from keryx.store.database import ReadTx

SESSIONS_MAX: Final = 2_000
"""A filter that leaves more sessions than this is checked only by the rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What the person may see, and the part of it to search."""

    audiences: frozenset[int]
    session_id: str | None = None
    platform: str | None = None
    asking: tuple[str, int] | None = None
    """The session and the turn that search. The turn's own messages and the session's own card are not found."""

    def holds(self, session: SessionRow) -> bool:
        """Return whether the session is in the scope."""
        return (
            session.audience_id in self.audiences
            and (self.session_id is None or session.id == self.session_id)
            and (self.platform is None or same_name(session.platform, self.platform))
        )


def make_plan(tx: ReadTx, query: Query, scope: Scope, *, before: DocumentKey | None) -> QueryPlan:
    """Return what to ask the index."""
    scopes: list[ScopeCondition] = []
    session_term = None if scope.session_id is None else scope_term("s", scope.session_id)
    if session_term is not None:
        # A session has one audience, so the audience need not be asked for.
        scopes.append(ScopeCondition(terms=(session_term,), is_narrow=True))
    elif searched_rows.count_audiences(tx, limit=len(scope.audiences) + 1) > len(scope.audiences):
        # A person of all audiences need not be narrowed to them.
        scopes.append(ScopeCondition(terms=tuple(scope_term("a", each) for each in sorted(scope.audiences))))
    if scope.platform is not None:
        scopes.append(ScopeCondition(terms=(scope_term("p", platform_token(scope.platform)),)))
    ends = [before] if before is not None else []
    after: Micros | None = None
    for each in query.filters:
        if each.name == ("after" if each.negated else "before"):
            ends.append((each.at, BEFORE_ALL))
        elif each.name in ("before", "after"):
            after = max(after or each.at, each.at)
    return QueryPlan(
        query=query,
        session_term=session_term,
        scopes=(*scopes, *_filter_conditions(tx, query.filters)),
        before=min(ends, default=None),
        after=after,
    )


def _filter_conditions(tx: ReadTx, filters: Sequence[QueryFilter]) -> Iterable[ScopeCondition]:
    """Yield what the index can express of the filters: at least the documents that they let through."""
    alternatives: dict[str, list[str]] = {}
    for each in filters:
        if each.name in ("source", "role"):
            kind, value = ("p", platform_token(each.value)) if each.name == "source" else ("r", each.value)
            if each.negated:
                yield ScopeCondition(terms=(scope_term(kind, value),), negated=True)
            else:
                alternatives.setdefault(each.name, []).append(scope_term(kind, value))
        elif each.name == "has":
            yield ScopeCondition(terms=(scope_term("h", each.value),), negated=each.negated)
        elif each.name == "from" and not each.negated:
            # For a candidate, one word of the name is enough.
            words = [*tokenize(each.value).words[:1], each.value]
            alternatives.setdefault(each.name, []).extend(scope_term("f", word) for word in words)
    for terms in alternatives.values():
        yield ScopeCondition(terms=tuple(dict.fromkeys(terms)))
    yield from _session_conditions(tx, [each for each in filters if not each.negated])


def _session_conditions(tx: ReadTx, filters: Sequence[QueryFilter]) -> Iterable[ScopeCondition]:
    """Yield the sessions that filters leave, if these are few."""
    sets = [
        _tagged(tx, each.value)
        if each.name == "tag"
        else searched_rows.list_in_state(tx, each.value, limit=SESSIONS_MAX)
        for each in filters
        if each.name == "tag" or (each.name == "is" and each.value in ("pinned", "archived", "deleted"))
    ]
    names = [each.value for each in filters if each.name == "in"]
    if names:
        sets.append(_in_sessions_or_projects(tx, names))
    for sessions in sets:
        if len(sessions) < SESSIONS_MAX:
            terms = tuple(scope_term("s", each) for each in sorted(sessions))
            yield ScopeCondition(terms=terms, is_narrow=True)


def _tagged(tx: ReadTx, value: str) -> Collection[str]:
    tags = [tag for tag in searched_rows.list_tags(tx) if same_name(value.removeprefix("#"), tag)]
    return searched_rows.list_tagged(tx, tags, limit=SESSIONS_MAX)


def _in_sessions_or_projects(tx: ReadTx, names: Sequence[str]) -> Collection[str]:
    projects = [
        project_id
        for project_id, name in searched_rows.list_projects(tx).items()
        if any(same_name(each, name) for each in names)
    ]
    return {*names, *searched_rows.list_in_projects(tx, projects, limit=SESSIONS_MAX)}
