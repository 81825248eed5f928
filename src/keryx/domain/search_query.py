"""The search language: any text is a query, and ``parse_query`` never raises.

Words are searched literally and must all be there; ``"phrase"``, ``-not``, ``AND``, ``OR`` (weaker than AND), ``NOT``,
``pre*`` and the filters of ``FILTERS`` are understood. What cannot be understood is searched as words or noted.
"""

import re
from collections.abc import Iterator
from dataclasses import field
from datetime import UTC, tzinfo
from typing import Final, Literal, TypeAlias, get_args

from keryx.clock import Micros
from keryx.domain.search_dates import instant
from keryx.domain.tokens import Tokens, normal, one_run, spans, tokenize
from keryx.values import dataclass

FilterName = Literal["from", "in", "tag", "source", "role", "before", "after", "has", "is"]
FILTERS: Final[tuple[FilterName, ...]] = get_args(FilterName)
VALUES: Final[dict[str, tuple[str, ...]]] = {
    "role": ("user", "assistant", "tool", "system"),
    "has": ("tool", "error", "code", "link", "image", "audio", "video", "file"),
    "is": ("open", "closed", "pinned", "archived", "deleted"),
}
"""Filters with a closed set of values."""

WORDS_MAX: Final = 64
"""A pasted page is not a query: more words than this are left out, and a note says so."""


@dataclass(frozen=True, slots=True)
class Words:
    """Tokens that stand at fixed distances: a word, a phrase, a run of characters.

    ``tokens`` are (offset, token) with rising offsets; with ``prefix`` the last one is only how a token begins.
    """

    tokens: tuple[tuple[int, str], ...]
    prefix: bool = False
    run: str = field(default="", compare=False)
    """The same as text, where it is one run of characters of a script without spaces: it is found as it stands."""

    @property
    def key_tokens(self) -> tuple[tuple[int, str], ...]:
        """The tokens that are looked up: of a run every second pair and the last one hold every character."""
        return (*self.tokens[:-1:2], self.tokens[-1]) if self.run else self.tokens


@dataclass(frozen=True, slots=True)
class Not:
    """Text in which ``node`` is not found."""

    node: Words


@dataclass(frozen=True, slots=True)
class All:
    """Text in which all of ``nodes`` are found."""

    nodes: tuple[Words | Not, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """Text in which at least one of ``nodes`` is found."""

    nodes: tuple[All, ...]


Node: TypeAlias = Words | Not | All | Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """One ``name:value``; ``at`` is the instant meant by ``before:`` and ``after:``."""

    name: FilterName
    value: str
    negated: bool = False
    at: Micros = 0

    def __str__(self) -> str:
        value = f'"{self.value}"' if re.search(r"\s", self.value) else self.value
        return f"{'-' if self.negated else ''}{self.name}:{value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What a text asks for. Filters apply to the whole; ``notes`` say what was not understood."""

    words: Any = Any(())
    filters: tuple[Filter, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to search for."""
        return not self.words.nodes and not self.filters

    def leaves(self) -> Iterator[Words]:
        """Yield what must be found somewhere, for ranking and highlighting; negated words are left out."""
        for alternative in self.words.nodes:
            yield from (node for node in alternative.nodes if isinstance(node, Words))


def parse_query(text: str, *, now: Micros = 0, zone: tzinfo = UTC) -> Query:
    """Return what ``text`` asks for; dates are read in ``zone``, relative ones counted from ``now``."""
    return _Parser(now=now, zone=zone).parse(text)


def words_of(text: str, *, prefix: bool = False) -> Words | None:
    """Return the tokens of ``text`` as one phrase, or None where it has none."""
    tokens = _narrowest(tokenize(text))
    if not tokens:
        return None
    # Only a word that goes on to the end can be a beginning: not "foo." nor a character of a script without spaces.
    return Words(
        tokens, prefix and spans(text)[-1][1] == len(normal(text)) and _is_word(tokens[-1][1]), one_run(text)
    )


def _narrowest(tokens: Tokens) -> tuple[tuple[int, str], ...]:
    """Return the fewest tokens that say the same: ``c++`` instead of ``c``, pairs instead of characters."""
    covered: set[int] = set()
    for position, extra in tokens.extras:
        covered.add(position)
        if not extra.endswith(("+", "#")):
            covered.add(position + 1)
    kept = [(position, word) for position, word in enumerate(tokens.words) if position not in covered]
    return tuple(sorted(kept + tokens.extras))


def _is_word(token: str) -> bool:
    # tokenize gives a character of a script without spaces as a word that forms a pair with itself.
    return not tokenize(token + token).extras


_ITEM: Final = re.compile(
    r"""(?P<negated>-(?=[^\s-]))?
        (?:(?P<filter>(?i:from|in|tag|source|role|before|after|has|is)):(?=[^\s]))?
        (?:"(?P<quoted>[^"]*)"? | (?P<bare>[^\s"]+))""",
    re.VERBOSE,
)


@dataclass(slots=True)
class _Item:
    """A piece of the query text: an operator, a filter, or words (None where the piece has no tokens)."""

    kind: Literal["operator", "filter", "words"]
    text: str
    words: Words | None = None
    filter: Filter | None = None
    negated: bool = False


@dataclass(slots=True)
class _Parser:
    now: Micros
    zone: tzinfo
    notes: list[str] = field(default_factory=list)

    def parse(self, text: str) -> Query:
        items = self._resolve([self._item(match) for match in _ITEM.finditer(text)])
        alternatives: list[list[Words | Not]] = [[]]
        filters: list[Filter] = []
        for item in items:
            if item.kind == "operator":
                alternatives.append([])
            elif item.filter is not None:
                filters.append(item.filter)
            elif item.words is not None:
                alternatives[-1].append(Not(item.words) if item.negated else item.words)
        kept = tuple(All(tuple(dict.fromkeys(nodes))) for nodes in self._limit(alternatives) if nodes)
        if text.strip() and not kept and not filters and not self.notes:
            self.notes.append("There is no word, sign or character to search for in this text.")
        return Query(words=Any(kept), filters=tuple(filters), notes=tuple(self.notes))

    def _item(self, match: re.Match[str]) -> _Item:
        negated, name, bare = bool(match["negated"]), match["filter"], match["bare"]
        value = match["quoted"] if bare is None else bare
        if name and value:
            return self._filter(match[0], name.lower(), value, negated=negated)
        if bare in ("AND", "OR", "NOT") and not negated:
            return _Item("operator", bare)
        prefix = bare is not None and bare.endswith("*")
        return _Item(
            "words",
            match[0],
            words=words_of(value.rstrip("*") if prefix else value, prefix=prefix),
            negated=negated,
        )

    def _filter(self, text: str, name: str, value: str, *, negated: bool) -> _Item:
        (known,) = (each for each in FILTERS if each == name)
        at = 0
        if known in ("before", "after"):
            found = instant(value, now=self.now, zone=self.zone)
            if found is None:
                self.notes.append(
                    f"{text} is left out: write a date as 2026, 2026-05, 2026-05-31, 7d, today or yesterday."
                )
                return _Item("filter", text)
            at = found
        elif known in VALUES:
            value = value.lower()
            if value not in VALUES[known]:
                self.notes.append(f"{text} is left out: {known}: takes {', '.join(VALUES[known])}.")
                return _Item("filter", text)
        return _Item("filter", text, filter=Filter(name=known, value=value, negated=negated, at=at))

    def _resolve(self, items: list[_Item]) -> list[_Item]:
        """Return the items with operators applied: only ORs between words are left, dangling ones are words."""
        resolved: list[_Item] = []
        flip = False
        for index, item in enumerate(items):
            if item.kind != "operator":
                _negate(item, flip=flip)
                flip = False
                resolved.append(item)
            elif not _operand_follows(items, index) or (item.text != "NOT" and (not resolved or flip)):
                resolved.append(_Item("words", item.text, words=words_of(item.text), negated=flip))
                flip = False
            elif item.text == "NOT":
                flip = not flip
            elif item.text == "OR" and _between_words(items, index):
                resolved.append(item)
        return resolved

    def _limit(self, alternatives: list[list[Words | Not]]) -> list[list[Words | Not]]:
        left = WORDS_MAX
        limited: list[list[Words | Not]] = []
        for nodes in alternatives:
            limited.append(nodes[:left])
            left -= len(limited[-1])
        if sum(map(len, alternatives)) > WORDS_MAX:
            self.notes.append(f"Only the first {WORDS_MAX} words of this text were searched for.")
        return limited


def _negate(item: _Item, *, flip: bool) -> None:
    if flip and item.filter is not None:
        given = item.filter
        item.filter = Filter(name=given.name, value=given.value, negated=not given.negated, at=given.at)
    elif flip:
        item.negated = not item.negated


def _operand_follows(items: list[_Item], index: int) -> bool:
    """Whether an operand comes after the operator at ``index``, behind any number of NOTs."""
    following = (item for item in items[index + 1 :] if item.kind != "operator" or item.text != "NOT")
    first = next(following, None)
    return first is not None and first.kind != "operator"


def _between_words(items: list[_Item], index: int) -> bool:
    after = next(item for item in items[index + 1 :] if item.kind != "operator")
    return items[index - 1].kind != "filter" and after.kind != "filter"
