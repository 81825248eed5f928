"""What a search may show: whose sessions, which of them, and which messages the filters let through.

Whatever can be said in scope terms is asked of the index; everything is judged again by the rows, so a session that
was purged, moved to the bin or retitled since is judged as it is now.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from keryx.clock import Micros
from keryx.domain.message import decode_parts, stored_search_text
from keryx.domain.search_match import Facts, Text, features, filters_match, matches, same
from keryx.domain.search_query import Filter, Query
from keryx.domain.segment import platform_token, scope_term
from keryx.domain.tokens import tokenize
from keryx.store.database import ReadTx
from keryx.store.tables import blobs, people, search
from keryx.store.tables.search import MessageRow, SessionRow
from keryx.values import dataclass
from keryx.views.search_plan import Key, Plan, ScopeGroup

SESSIONS_MAX: Final = 2_000
"""A filter that leaves more sessions than this is judged by the rows alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What the asker may see, and the part of it that is searched."""

    audiences: frozenset[int]
    session_id: str | None = None
    platform: str | None = None
    asking: tuple[str, int] | None = None
    """The session and the turn that asks: what it was asked in, and what the session is called after it, is no find."""

    def holds(self, session: SessionRow) -> bool:
        """Whether the session is one of those searched."""
        return (
            session.audience_id in self.audiences
            and (self.session_id is None or session.id == self.session_id)
            and (self.platform is None or same(session.platform, self.platform))
        )


def scope_of(
    tx: ReadTx,
    person_id: int,
    *,
    session_id: str | None,
    platform: str | None,
    audience_id: int | None = None,
    asking: tuple[str, int] | None = None,
) -> Scope:
    """Return the scope of a person's search; with ``audience_id`` only what that audience heard too."""
    audiences = frozenset(people.list_audiences(tx, person_id))
    if audience_id is not None:
        audiences &= {audience_id}
    return Scope(audiences=audiences, session_id=session_id, platform=platform, asking=asking)


def make_plan(tx: ReadTx, query: Query, scope: Scope, *, before: Key | None) -> Plan:
    """Return what to ask of the index."""
    groups: list[ScopeGroup] = []
    session_term = None if scope.session_id is None else scope_term("s", scope.session_id)
    if session_term is not None:
        # All of it was said to one audience, so there is no need to ask for that.
        groups.append(ScopeGroup(terms=(session_term,), is_narrow=True))
    elif search.count_audiences(tx, limit=len(scope.audiences) + 1) > len(scope.audiences):
        # Whoever may see everything need not ask for it.
        groups.append(ScopeGroup(terms=tuple(scope_term("a", each) for each in sorted(scope.audiences))))
    if scope.platform is not None:
        groups.append(ScopeGroup(terms=(scope_term("p", platform_token(scope.platform)),)))
    ends = [before] if before is not None else []
    after: Micros | None = None
    for each in query.filters:
        if each.name == ("after" if each.negated else "before"):
            ends.append((each.at, _BEFORE_ALL))
        elif each.name in ("before", "after"):
            after = max(after or each.at, each.at)
    return Plan(
        query=query,
        session_term=session_term,
        scopes=(*groups, *_filter_groups(tx, query.filters)),
        before=min(ends, default=None),
        after=after,
    )


_BEFORE_ALL: Final = -(1 << 62)


def _filter_groups(tx: ReadTx, filters: Sequence[Filter]) -> Iterable[ScopeGroup]:
    """Yield what the index can say about the filters; never less than what they let through."""
    alternatives: dict[str, list[str]] = {}
    for each in filters:
        if each.name in ("source", "role"):
            kind, value = ("p", platform_token(each.value)) if each.name == "source" else ("r", each.value)
            if each.negated:
                yield ScopeGroup(terms=(scope_term(kind, value),), negated=True)
            else:
                alternatives.setdefault(each.name, []).append(scope_term(kind, value))
        elif each.name == "has":
            yield ScopeGroup(terms=(scope_term("h", each.value),), negated=each.negated)
        elif each.name == "from" and not each.negated:
            # One word of the name is enough for a proposal.
            words = [*tokenize(each.value).words[:1], each.value]
            alternatives.setdefault(each.name, []).extend(scope_term("f", word) for word in words)
    for terms in alternatives.values():
        yield ScopeGroup(terms=tuple(dict.fromkeys(terms)))
    yield from _session_groups(tx, [each for each in filters if not each.negated])


def _session_groups(tx: ReadTx, filters: Sequence[Filter]) -> Iterable[ScopeGroup]:
    """Yield the sessions that filters leave, where they are few."""
    sets = [
        _tagged(tx, each.value) if each.name == "tag" else _in_state(tx, each.value)
        for each in filters
        if each.name == "tag" or (each.name == "is" and each.value in ("pinned", "archived", "deleted"))
    ]
    places = [each.value for each in filters if each.name == "in"]
    if places:
        sets.append(_in_places(tx, places))
    for sessions in sets:
        if len(sessions) < SESSIONS_MAX:
            yield ScopeGroup(terms=tuple(scope_term("s", each) for each in sorted(sessions)), is_narrow=True)


def _tagged(tx: ReadTx, value: str) -> Collection[str]:
    tags = [tag for tag in search.list_tags(tx) if same(value.removeprefix("#"), tag)]
    return search.list_tagged(tx, tags, limit=SESSIONS_MAX)


def _in_state(tx: ReadTx, state: str) -> Collection[str]:
    return search.list_in_state(tx, state, limit=SESSIONS_MAX)


def _in_places(tx: ReadTx, names: Sequence[str]) -> Collection[str]:
    projects = [
        key for key, name in search.list_projects(tx).items() if any(same(each, name) for each in names)
    ]
    return {*names, *search.list_in_projects(tx, projects, limit=SESSIONS_MAX)}


class Match(NamedTuple):
    """A message, or a session's card (``message`` is None), that answers the query."""

    key: Key
    session: SessionRow
    message: MessageRow | None
    text: Text


class Judge:
    """Decides by the rows what answers a query."""

    def __init__(self, tx: ReadTx, query: Query, scope: Scope) -> None:
        self._tx = tx
        self._query = query
        self._scope = scope
        self._sessions: dict[str, SessionRow | None] = {}
        self._cards_seen: set[str] = set()
        self._shows_bin = any(
            each.name == "is" and each.value == "deleted" and not each.negated for each in query.filters
        )

    def judge(self, ids: Sequence[int]) -> list[Match]:
        """Return those of some documents that answer, in the order they came; a session's card only once."""
        messages = search.list_messages(self._tx, [each for each in ids if each > 0])
        cards = search.find_cards(self._tx, [-each for each in ids if each < 0])
        self._read_sessions({*cards.values(), *(message.session_id for message in messages.values())})
        found: list[Match | None] = []
        for each in ids:
            if each > 0:
                found.append(self._message(messages[each]) if each in messages else None)
            elif -each in cards:
                found.append(self._card(cards[-each], card_id=-each))
        return [match for match in found if match is not None]

    def judge_cards(self, session_ids: Collection[str]) -> list[Match]:
        """Return the cards of some sessions that answer."""
        self._read_sessions(set(session_ids))
        found = [self._card(each, card_id=0) for each in session_ids]
        return [match for match in found if match is not None]

    def _read_sessions(self, session_ids: set[str]) -> None:
        missing = session_ids - self._sessions.keys()
        rows = search.list_sessions(self._tx, missing)
        self._sessions.update((each, rows.get(each)) for each in missing)

    def _visible(self, session_id: str) -> SessionRow | None:
        session = self._sessions[session_id]
        if session is None or not self._scope.holds(session):
            return None
        return session if self._shows_bin or session.deleted_at is None else None

    def _message(self, message: MessageRow) -> Match | None:
        session = self._visible(message.session_id)
        if session is None or self._scope.asking == (message.session_id, message.turn_id):
            return None
        read_kept = partial(blobs.find_result, self._tx, session_id=message.session_id)
        text = Text(stored_search_text(message.parts, read_kept))
        facts = (
            replace(
                _session_facts(session),
                created_at=message.created_at,
                role=message.role,
                author=message.author,
                author_id=message.author_id,
                has=features(decode_parts(message.parts)),
            )
            if self._query.filters
            else None
        )
        if not self._answers(text, facts):
            return None
        return Match((message.created_at, message.id), session, message, text)

    def _card(self, session_id: str, *, card_id: int) -> Match | None:
        session = self._visible(session_id)
        if session is None or session_id in self._cards_seen:
            return None
        if self._scope.asking is not None and self._scope.asking[0] == session_id:
            return None
        text = Text(session.card)
        if not self._answers(text, _session_facts(session)):
            return None
        self._cards_seen.add(session_id)
        return Match((session.started_at, -card_id), session, None, text)

    def _answers(self, text: Text, facts: Facts | None) -> bool:
        if facts is not None and not filters_match(self._query.filters, facts):
            return False
        return not self._query.words.nodes or matches(self._query.words, text)


def _session_facts(session: SessionRow) -> Facts:
    states = {session.state}
    for state, since in (
        ("pinned", session.pinned_at),
        ("archived", session.archived_at),
        ("deleted", session.deleted_at),
    ):
        if since is not None:
            states.add(state)
    return Facts(
        session_id=session.id,
        created_at=session.started_at,
        platform=session.platform,
        project=session.project,
        tags=frozenset(session.tags),
        states=frozenset(states),
    )
