"""The search language: any text is a query, and ``parse_query`` never raises.

A text must match all words of a query. The language has ``"phrase"``, ``-not``, ``AND``, ``OR`` (weaker than AND),
``NOT``, ``pre*`` and the filters of ``FILTERS``. Anything else is searched for as words, or a note says what was
left out.
"""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Literal, NamedTuple

from keryx.clock import DAY, HOUR, SECOND, Micros
from keryx.core.search.rules.query import (
    FILTERS,
    VALUES,
    Conjunction,
    Disjunction,
    Negation,
    Phrase,
    Query,
    QueryFilter,
)
from keryx.core.search.rules.tokens import Tokens, as_run, compose, tokenize, word_spans

_DATE: Final = re.compile(r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2}))?)?")
_AGO: Final = re.compile(r"([0-9]{1,6})([hdwmy])")
_UNITS: Final = {"h": HOUR, "d": DAY, "w": 7 * DAY, "m": 30 * DAY, "y": 365 * DAY}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def parse_instant(text: str, *, now: Micros, zone: tzinfo) -> Micros | None:
    """Return the time meant by ``text``, or None if ``text`` is not a date.

    ``2026``, ``2026-05`` and ``2026-05-31`` mean the beginning of that year, month or day in ``zone``. ``today`` and
    ``yesterday`` mean the beginning of that day. ``7d`` means seven days ago; the other units are ``h``, ``w``, ``m``
    (30 days) and ``y`` (365 days).
    """
    word = text.lower()
    if ago := _AGO.fullmatch(word):
        return now - int(ago[1]) * _UNITS[ago[2]]
    try:
        if word in ("today", "yesterday"):
            day = (_EPOCH + timedelta(microseconds=now)).astimezone(zone).date()
            day -= timedelta(days=word == "yesterday")
            return _start_of(day.year, day.month, day.day, zone)
        if date := _DATE.fullmatch(word):
            return _start_of(int(date[1]), int(date[2] or 1), int(date[3] or 1), zone)
    except (ValueError, OverflowError):
        # 31 February, the year 0, or a day before Python's calendar begins.
        return None
    return None


def _start_of(year: int, month: int, day: int, zone: tzinfo) -> Micros:
    moment = datetime(year, month, day, tzinfo=zone)
    return (moment - _EPOCH) // timedelta(seconds=1) * SECOND


CHARS_MAX: Final = 4_000
WORDS_MAX: Final = 64
FILTERS_MAX: Final = 16
"""Whatever a query holds beyond these, of a pasted page for example, is left out, and a note says so."""


def parse_query(text: str, *, now: Micros = 0, zone: tzinfo = UTC) -> Query:
    """Return what ``text`` asks for. Dates are read in ``zone``; relative dates count from ``now``."""
    return _Parser(now=now, zone=zone).parse(text)


def _parse_phrase(text: str, *, prefix: bool = False) -> Phrase | None:
    tokens = _longest_tokens(tokenize(text))
    if not tokens:
        return None
    return Phrase(tokens, prefix and _ends_in_word(text, tokens[-1][1]), as_run(text))


def _ends_in_word(text: str, last_token: str) -> bool:
    """Return whether a text can end in a prefix: not "foo.", and not a character of a script without spaces."""
    is_at_end = word_spans(text)[-1][1] == len(compose(text))
    # A character of a script without spaces forms a pair with itself.
    return is_at_end and not tokenize(last_token + last_token).extras


def _longest_tokens(tokens: Tokens) -> tuple[tuple[int, str], ...]:
    """Return the fewest tokens that mean the same: ``c++`` instead of ``c``, pairs instead of characters."""
    covered: set[int] = set()
    for position, extra in tokens.extras:
        covered.add(position)
        if not extra.endswith(("+", "#")):
            covered.add(position + 1)
    uncovered = [(position, word) for position, word in enumerate(tokens.words) if position not in covered]
    return tuple(sorted(uncovered + tokens.extras))


_ITEM: Final = re.compile(
    r"""(?P<negated>-(?=[^\s-]))?
        (?:(?P<filter>(?i:from|in|tag|source|role|before|after|has|is)):(?=[^\s]))?
        (?:"(?P<quoted>[^"]*)"? | (?P<bare>[^\s"]+))""",
    re.VERBOSE,
)


class _Item(NamedTuple):
    """A piece of the query text: an operator, a filter, or a phrase (None if the piece has no tokens)."""

    kind: Literal["operator", "filter", "phrase"]
    text: str
    phrase: Phrase | None = None
    filter: QueryFilter | None = None
    negated: bool = False


class _Parser:
    def __init__(self, *, now: Micros, zone: tzinfo) -> None:
        self._now = now
        self._zone = zone
        self._notes: list[str] = []

    def parse(self, text: str) -> Query:
        if len(text) > CHARS_MAX:
            self._notes.append(f"Only the first {CHARS_MAX:,} characters of this text were searched for.")
            text = text[:CHARS_MAX]
        items = self._resolve([self._item(match) for match in _ITEM.finditer(text)])
        alternatives: list[list[Phrase | Negation]] = [[]]
        filters: list[QueryFilter] = []
        for item in items:
            if item.kind == "operator":
                alternatives.append([])
            elif item.filter is not None:
                filters.append(item.filter)
            elif item.phrase is not None:
                alternatives[-1].append(Negation(item.phrase) if item.negated else item.phrase)
        kept = tuple(Conjunction(tuple(dict.fromkeys(nodes))) for nodes in self._limit(alternatives) if nodes)
        if text.strip() and not kept and not filters and not self._notes:
            self._notes.append("There is no word, sign or character to search for in this text.")
        if len(filters) > FILTERS_MAX:
            self._notes.append(f"Only the first {FILTERS_MAX} filters of this text were applied.")
        return Query(words=Disjunction(kept), filters=tuple(filters[:FILTERS_MAX]), notes=tuple(self._notes))

    def _item(self, match: re.Match[str]) -> _Item:
        negated, name, bare = bool(match["negated"]), match["filter"], match["bare"]
        value = match["quoted"] if bare is None else bare
        if name and value:
            return self._filter(match[0], name.lower(), value, negated=negated)
        if bare in ("AND", "OR", "NOT") and not negated:
            return _Item("operator", bare)
        prefix = bare is not None and bare.endswith("*")
        phrase = _parse_phrase(value.rstrip("*") if prefix else value, prefix=prefix)
        return _Item("phrase", match[0], phrase=phrase, negated=negated)

    def _filter(self, text: str, name: str, value: str, *, negated: bool) -> _Item:
        (known,) = (each for each in FILTERS if each == name)
        at = 0
        if known in ("before", "after"):
            found = parse_instant(value, now=self._now, zone=self._zone)
            if found is None:
                self._notes.append(
                    f"{text} is left out: write a date as 2026, 2026-05, 2026-05-31, 7d, today or yesterday."
                )
                return _Item("filter", text)
            at = found
        elif known in VALUES:
            value = value.lower()
            if value not in VALUES[known]:
                self._notes.append(f"{text} is left out: {known}: takes {', '.join(VALUES[known])}.")
                return _Item("filter", text)
        return _Item("filter", text, filter=QueryFilter(name=known, value=value, negated=negated, at=at))

    def _resolve(self, items: list[_Item]) -> list[_Item]:
        """Return the items with the operators applied.

        The only operators left are ORs between phrases. An operator without operands becomes a word.
        """
        resolved: list[_Item] = []
        flip = False
        following = _following(items)
        for index, item in enumerate(items):
            if item.kind != "operator":
                resolved.append(_negate(item) if flip else item)
                flip = False
            elif not following[index].is_operand or (item.text != "NOT" and (not resolved or flip)):
                resolved.append(_Item("phrase", item.text, phrase=_parse_phrase(item.text), negated=flip))
                flip = False
            elif item.text == "NOT":
                flip = not flip
            elif item.text == "OR" and "filter" not in (items[index - 1].kind, following[index].operand):
                resolved.append(item)
        return resolved

    def _limit(self, alternatives: list[list[Phrase | Negation]]) -> list[list[Phrase | Negation]]:
        left = WORDS_MAX
        limited: list[list[Phrase | Negation]] = []
        for nodes in alternatives:
            limited.append(nodes[:left])
            left -= len(limited[-1])
        if sum(map(len, alternatives)) > WORDS_MAX:
            self._notes.append(f"Only the first {WORDS_MAX} words of this text were searched for.")
        return limited


def _negate(item: _Item) -> _Item:
    if item.filter is None:
        return item._replace(negated=not item.negated)
    return item._replace(filter=replace(item.filter, negated=not item.filter.negated))


class _Following(NamedTuple):
    """What comes after an item: whether it is an operand, NOTs passed over, and of which kind the next operand is."""

    is_operand: bool
    operand: str


def _following(items: list[_Item]) -> list[_Following]:
    """Return what comes after each item, in one pass from the last."""
    after = _Following(is_operand=False, operand="")
    found: list[_Following] = []
    for item in reversed(items):
        found.append(after)
        if item.kind != "operator":
            after = _Following(is_operand=True, operand=item.kind)
        elif item.text != "NOT":
            after = after._replace(is_operand=False)
    return found[::-1]
