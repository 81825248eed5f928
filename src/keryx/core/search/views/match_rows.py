"""Checks candidates by their rows, with the rules that also scan new rows.

So a session that was purged, deleted or renamed since it was indexed is matched as it is now.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from keryx.core.conversations.rules.message import Message
from keryx.core.search.rules.filters import DocumentFacts, features, filters_match
from keryx.core.search.rules.matching import TokenizedText, matches
from keryx.core.search.rules.query import Query
from keryx.core.search.tables.index_state import find_sessions
from keryx.core.search.views.facts_to_index import message_text
from keryx.core.search.views.query_plan import DocumentKey
from keryx.core.search.views.scope import Scope
from keryx.core.search.views.searched_rows import SessionRow, list_messages, list_sessions
from keryx.store.database import ReadTx


class Match(NamedTuple):
    """A message or a session card (``message`` is None) that matches the query."""

    key: DocumentKey
    session: SessionRow
    message: Message | None
    text: TokenizedText


class RowMatcher:
    """Matches messages and session cards with one query."""

    def __init__(self, tx: ReadTx, query: Query, scope: Scope) -> None:
        self._tx = tx
        self._query = query
        self._scope = scope
        self._sessions: dict[str, SessionRow | None] = {}
        self._matched_cards: set[str] = set()
        self._shows_deleted = any(
            each.name == "is" and each.value == "deleted" and not each.negated for each in query.filters
        )

    def match_documents(self, ids: Sequence[int]) -> list[Match]:
        """Return the documents that match, in the given order. A session's card is returned only once."""
        messages = list_messages(self._tx, [each for each in ids if each > 0])
        cards = find_sessions(self._tx, [-each for each in ids if each < 0])
        self._read_sessions({*cards.values(), *(message.session_id for message in messages.values())})
        found: list[Match | None] = []
        for each in ids:
            if each > 0:
                found.append(self._match_message(messages[each]) if each in messages else None)
            elif -each in cards:
                found.append(self._match_card(cards[-each], card_id=-each))
        return [match for match in found if match is not None]

    def match_cards(self, session_ids: Collection[str]) -> list[Match]:
        """Return the cards of some sessions that match."""
        self._read_sessions(set(session_ids))
        found = [self._match_card(each, card_id=0) for each in session_ids]
        return [match for match in found if match is not None]

    def _read_sessions(self, session_ids: set[str]) -> None:
        missing = session_ids - self._sessions.keys()
        rows = list_sessions(self._tx, missing)
        self._sessions.update((each, rows.get(each)) for each in missing)

    def _visible(self, session_id: str) -> SessionRow | None:
        session = self._sessions[session_id]
        if session is None or not self._scope.holds(session):
            return None
        return session if self._shows_deleted or session.deleted_at is None else None

    def _match_message(self, message: Message) -> Match | None:
        session = self._visible(message.session_id)
        if session is None or self._scope.asking == (message.session_id, message.turn_id):
            return None
        text = TokenizedText(message_text(self._tx, message))
        facts = _message_facts(message, session) if self._query.filters else None
        if not self._matches(text, facts):
            return None
        return Match((message.created_at, message.id), session, message, text)

    def _match_card(self, session_id: str, *, card_id: int) -> Match | None:
        session = self._visible(session_id)
        if session is None or session_id in self._matched_cards:
            return None
        if self._scope.asking is not None and self._scope.asking[0] == session_id:
            return None
        text = TokenizedText(session.card_text)
        if not self._matches(text, _session_facts(session)):
            return None
        self._matched_cards.add(session_id)
        return Match((session.started_at, -card_id), session, None, text)

    def _matches(self, text: TokenizedText, facts: DocumentFacts | None) -> bool:
        if facts is not None and not filters_match(self._query.filters, facts):
            return False
        return not self._query.words.nodes or matches(self._query.words, text)


def _message_facts(message: Message, session: SessionRow) -> DocumentFacts:
    return replace(
        _session_facts(session),
        created_at=message.created_at,
        role=message.role,
        author=message.author,
        author_id=message.author_id,
        has=features(message.parts),
    )


def _session_facts(session: SessionRow) -> DocumentFacts:
    since = {
        "pinned": session.pinned_at,
        "archived": session.archived_at,
        "deleted": session.deleted_at,
    }
    return DocumentFacts(
        session_id=session.id,
        created_at=session.started_at,
        platform=session.platform,
        project=session.project,
        tags=frozenset(session.tags),
        states=frozenset([session.state, *(state for state, at in since.items() if at is not None)]),
    )
