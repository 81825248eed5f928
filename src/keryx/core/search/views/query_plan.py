"""What to ask the index, and in which order: selective conditions first, the newest segments first."""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from keryx.clock import Micros
from keryx.core.search.rules.index_format import TERM_MAX
from keryx.core.search.rules.query import Conjunction, Negation, Phrase, Query
from keryx.core.search.tables.segments import SegmentRow

DocumentKey: TypeAlias = tuple[Micros, int]
"""(time, id): the order of documents everywhere. A session card has an id below zero."""
BEFORE_ALL: Final = -(1 << 62)
"""Smaller than the time and the id of any document."""

STAGE_FIRST: Final = 600
"""Documents in the segments of the first stage."""
STAGE_GROWTH: Final = 8
"""After a stage without candidates, the next one has this many times as many documents as all stages so far."""
STAGE_MAX: Final = 256_000
PAGE: Final = 21
"""Candidates that a caller probably wants: a page, and one more to know whether there is another page."""
LOOKUPS_MAX: Final = 16
"""Up to this many scope terms are looked up one by one; for more, the whole range of their kind is read."""


class ScopeCondition(NamedTuple):
    """Documents that have any of ``terms``, which are of one kind; if ``negated``, documents that have none."""

    terms: tuple[str, ...]
    negated: bool = False
    is_narrow: bool = False
    """Whether so few documents have the terms that the condition should be evaluated first."""


class TokenCondition(NamedTuple):
    """Documents that hold a token, or a token that begins with ``text``."""

    text: str
    is_prefix: bool


Condition: TypeAlias = ScopeCondition | TokenCondition | Phrase | Negation


class QueryPlan(NamedTuple):
    """What to look for in the index; ``before`` is exclusive, ``after`` inclusive."""

    query: Query
    session_term: str | None = None
    """The scope term of the session, if only one session is searched."""
    scopes: tuple[ScopeCondition, ...] = ()
    before: DocumentKey | None = None
    after: Micros | None = None

    def alternatives(self) -> list[list[Condition]]:
        """Return the conditions of each alternative of the query, in the order of evaluation."""
        nodes = self.query.words.nodes or (Conjunction(()),)
        return [list(_ordered_conditions(node, self.scopes)) for node in nodes]


def _ordered_conditions(alternative: Conjunction, scopes: Sequence[ScopeCondition]) -> Iterator[Condition]:
    """Yield the conditions: those that probably leave the fewest documents first, negated ones last.

    Scopes follow the first whole token. So a rare word is looked up alone, and of a common word only the documents in
    scope are looked at further.
    """
    phrases = [node for node in alternative.nodes if isinstance(node, Phrase)]
    tokens = {
        TokenCondition(token, is_prefix=phrase.prefix and index == len(phrase.lookup_tokens) - 1)
        for phrase in phrases
        for index, (_, token) in enumerate(phrase.lookup_tokens)
    }
    ordered = sorted(tokens, key=lambda token: (token.is_prefix, -len(token.text), token.text))
    first = [token for token in ordered[:1] if not token.is_prefix]
    wanted = [scope for scope in scopes if not scope.negated]
    yield from (scope for scope in wanted if scope.is_narrow)
    yield from first
    yield from (scope for scope in wanted if not scope.is_narrow)
    yield from ordered[len(first) :]
    yield from (phrase for phrase in phrases if len(phrase.lookup_tokens) - phrase.prefix > 1)
    yield from (scope for scope in scopes if scope.negated)
    yield from (node for node in alternative.nodes if isinstance(node, Negation))


def lookup_terms(condition: Condition) -> Sequence[str]:
    """Return the terms that a condition looks up one by one."""
    match condition:
        case ScopeCondition(terms=terms):
            return terms if len(terms) <= LOOKUPS_MAX else ()
        case TokenCondition(is_prefix=False):
            return (condition.text[:TERM_MAX],)
        case _:
            return ()


class SegmentStages:
    """Segments in the given order, in stages: first a few small ones, then as many as a page seems to need."""

    def __init__(self, segments: Sequence[SegmentRow]) -> None:
        self._waiting = deque(segments)
        self._size = STAGE_FIRST
        self._taken = 0

    @property
    def last_at(self) -> Micros | None:
        """The time of the newest document in the segments not taken yet; None if all were taken."""
        return self._waiting[0].last_at if self._waiting else None

    def take(self, found: int) -> list[SegmentRow]:
        """Return the segments of the next stage, after ``found`` candidates came from the stages before."""
        if self._taken:
            # One or two candidates may be chance, and a large segment read in vain costs more than another stage.
            needed = (
                self._taken * max(1, PAGE - found) // (found + 2) if found else STAGE_GROWTH * self._taken
            )
            self._size = min(STAGE_MAX, max(self._size, needed))
        stage: list[SegmentRow] = []
        documents = 0
        while self._waiting and documents < self._size:
            stage.append(self._waiting.popleft())
            documents += stage[-1].doc_count
        self._taken += documents
        return stage
