"""What is asked of the index, and in which order: conditions that leave little first, the newest segments first."""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from keryx.clock import Micros
from keryx.domain.postings import TERM_MAX
from keryx.domain.search_query import All, Not, Query, Words
from keryx.store.tables.search import SegmentRow
from keryx.values import dataclass

Key: TypeAlias = tuple[Micros, int]
"""(time, id): the order of documents everywhere. A session's card has an id below zero."""

STAGE_FIRST: Final = 600
"""Documents of the segments that are asked first."""
STAGE_GROWTH: Final = 8
"""How many times as many are asked next where these gave nothing."""
STAGE_MAX: Final = 256_000
PAGE: Final = 21
"""Candidates that are likely to be wanted: a page, and one to know whether there is another."""
LOOKUPS_MAX: Final = 16
"""Up to so many scope terms are looked up one by one; for more the whole range of their kind is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeGroup:
    """Documents that have any of ``terms``, which are of one kind; with ``negated`` those that have none."""

    terms: tuple[str, ...]
    negated: bool = False
    is_narrow: bool = False
    """Whether it leaves so few documents that it is worth asking first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to look for in the index; ``before`` is exclusive, ``after`` inclusive."""

    query: Query
    session_term: str | None = None
    """The scope term of the only session that is wanted."""
    scopes: tuple[ScopeGroup, ...] = ()
    before: Key | None = None
    after: Micros | None = None


class Token(NamedTuple):
    """One token, or how one begins, wherever it stands."""

    text: str
    is_prefix: bool


Condition: TypeAlias = ScopeGroup | Token | Words | Not


def in_order(alternative: All, scopes: Sequence[ScopeGroup]) -> Iterator[Condition]:
    """Yield the conditions, those first that are likely to leave the least; what is taken away comes last.

    Scopes come after the first whole token: a rare word is then looked for alone, and of a common one only what is in
    scope is looked at any further.
    """
    words = [node for node in alternative.nodes if isinstance(node, Words)]
    tokens = {
        Token(token, is_prefix=node.prefix and index == len(node.key_tokens) - 1)
        for node in words
        for index, (_, token) in enumerate(node.key_tokens)
    }
    ordered = sorted(tokens, key=lambda token: (token.is_prefix, -len(token.text), token.text))
    first = [token for token in ordered[:1] if not token.is_prefix]
    wanted = [group for group in scopes if not group.negated]
    yield from (group for group in wanted if group.is_narrow)
    yield from first
    yield from (group for group in wanted if not group.is_narrow)
    yield from ordered[len(first) :]
    yield from (node for node in words if len(node.key_tokens) - node.prefix > 1)
    yield from (group for group in scopes if group.negated)
    yield from (node for node in alternative.nodes if isinstance(node, Not))


def whole_terms(condition: Condition) -> Sequence[str]:
    """Return the terms that a condition looks up one by one."""
    match condition:
        case ScopeGroup(terms=terms):
            return terms if len(terms) <= LOOKUPS_MAX else ()
        case Token(is_prefix=False):
            return (condition.text[:TERM_MAX],)
        case _:
            return ()


class Stages:
    """The segments in the order they came, a few small ones first, then as many as a page seems to need."""

    def __init__(self, segments: Sequence[SegmentRow]) -> None:
        self._waiting = deque(segments)
        self._size = STAGE_FIRST
        self._taken = 0

    @property
    def last_at(self) -> Micros | None:
        """The time of the newest document that was not looked at yet; None: all were."""
        return self._waiting[0].last_at if self._waiting else None

    def take(self, given: int) -> list[SegmentRow]:
        """Return the segments to ask next, after so many candidates were given of those before."""
        if self._taken:
            # One or two may be there by chance, and a large segment that is asked in vain costs more than asking again.
            needed = (
                self._taken * max(1, PAGE - given) // (given + 2) if given else STAGE_GROWTH * self._taken
            )
            self._size = min(STAGE_MAX, max(self._size, needed))
        stage: list[SegmentRow] = []
        documents = 0
        while self._waiting and documents < self._size:
            stage.append(self._waiting.popleft())
            documents += stage[-1].doc_count
        self._taken += documents
        return stage
