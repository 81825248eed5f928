"""Any text is a query, with the meaning that people expect."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.clock import DAY, HOUR
from keryx.core.search.rules.matching import TokenizedText, matches
from keryx.core.search.rules.parse_query import CHARS_MAX, FILTERS_MAX, WORDS_MAX, parse_query
from keryx.core.search.rules.query import Conjunction, Disjunction, Negation, Phrase, Query, QueryFilter

NOW = int(datetime(2026, 5, 31, 12, 30, tzinfo=UTC).timestamp() * 1_000_000)


def phrase(*tokens: str, prefix: bool = False) -> Phrase:
    return Phrase(tuple(enumerate(tokens)), prefix)


def alternatives(text: str) -> list[list[Phrase | Negation]]:
    return [list(each.nodes) for each in parse_query(text).words.nodes]


def is_match(query: str, text: str) -> bool:
    return matches(parse_query(query).words, TokenizedText(text))


def instant(year: int, month: int, day: int, hour: int = 0) -> int:
    return int(datetime(year, month, day, hour, tzinfo=UTC).timestamp() * 1_000_000)


@given(st.text(alphabet=st.characters(), max_size=80))
@settings(max_examples=100)
def test_no_text_is_refused(text: str) -> None:
    query = parse_query(text, now=NOW)
    assert query.is_empty == (not query.words.nodes and not query.filters)
    assert not query.is_empty or query.notes or not text.strip()


@given(st.text(alphabet='aA数"-* :()\u0301+#AND OR NOT', max_size=40))
@settings(max_examples=100)
def test_no_mixture_of_operators_is_refused(text: str) -> None:
    assert isinstance(parse_query(text, now=NOW), Query)


@given(st.lists(st.sampled_from(["alpha", "v1.2", "ana@x.org", "C++", "数据库", "what?", "👍"]), min_size=1))
@settings(max_examples=50)
def test_ordinary_text_finds_itself(pieces: list[str]) -> None:
    text = " ".join(pieces)
    assert is_match(text, text)
    assert is_match(f'"{text}"', text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("alpha Beta", [[phrase("alpha"), phrase("beta")]]),
        ("v1.2", [[phrase("v1", "2")]]),
        ("C++ C#", [[phrase("c++"), phrase("c#")]]),
        ('"the first" x', [[phrase("the", "first"), phrase("x")]]),
        ('"the first', [[phrase("the", "first")]]),
        ("-alpha", [[Negation(phrase("alpha"))]]),
        ('-"a b"', [[Negation(phrase("a", "b"))]]),
        ("--verbose", [[phrase("verbose")]]),
        ("- alpha", [[phrase("alpha")]]),
        ("a AND b", [[phrase("a"), phrase("b")]]),
        ("a b OR c d", [[phrase("a"), phrase("b")], [phrase("c"), phrase("d")]]),
        ("a or b", [[phrase("a"), phrase("or"), phrase("b")]]),
        ("a NOT b", [[phrase("a"), Negation(phrase("b"))]]),
        ("NOT NOT b", [[phrase("b")]]),
        ("NOT -b", [[phrase("b")]]),
        ("a OR NOT b", [[phrase("a")], [Negation(phrase("b"))]]),
        ("OR a", [[phrase("or"), phrase("a")]]),
        ("a AND", [[phrase("a"), phrase("and")]]),
        ("a OR AND b", [[phrase("a"), phrase("or"), phrase("b")]]),
        ("NOT", [[phrase("not")]]),
        ("a a", [[phrase("a")]]),
        ("pre*", [[phrase("pre", prefix=True)]]),
        ("foo-ba*", [[phrase("foo", "ba", prefix=True)]]),
        ("foo.*", [[phrase("foo")]]),
        ("a*b", [[phrase("a", "b")]]),
        ("foo_*", [[phrase("foo_", prefix=True)]]),
        ("数据*", [[phrase("数据")]]),
        ("数*", [[phrase("数")]]),
        ("数", [[phrase("数")]]),
        ("数据库", [[phrase("数据", "据库")]]),
        ("a OR ??? b", [[phrase("a")], [phrase("b")]]),
        ("From: me", [[phrase("from"), phrase("me")]]),
        ("foo:bar", [[phrase("foo", "bar")]]),
    ],
)
def test_a_query_becomes_alternatives_of_phrases(text: str, expected: list[list[Phrase | Negation]]) -> None:
    assert alternatives(text) == expected


def test_words_and_characters_mixed_are_one_phrase() -> None:
    assert alternatives("v数据x") == [[Phrase(((0, "v"), (1, "数据"), (3, "x")))]]


@pytest.mark.parametrize(
    ("text", "name", "value", "negated"),
    [
        ("from:Ana", "from", "Ana", False),
        ('in:"my project"', "in", "my project", False),
        ("-tag:work", "tag", "work", True),
        ("NOT source:telegram", "source", "telegram", True),
        ("NOT -role:USER", "role", "user", False),
        ("HAS:link", "has", "link", False),
        ("is:pinned", "is", "pinned", False),
    ],
)
def test_filters_are_separated_from_the_words(text: str, name: str, value: str, *, negated: bool) -> None:
    query = parse_query(f"x {text} y")
    assert [(each.name, each.value, each.negated) for each in query.filters] == [(name, value, negated)]
    assert query.words == Disjunction((Conjunction((phrase("x"), phrase("y"))),))


def test_a_filter_is_shown_as_it_is_written() -> None:
    assert str(QueryFilter(name="in", value="my project")) == 'in:"my project"'
    assert str(QueryFilter(name="tag", value="a", negated=True)) == "-tag:a"


def test_or_between_filters_is_not_searched_for() -> None:
    query = parse_query("from:ana OR from:bob hello")
    assert [each.value for each in query.filters] == ["ana", "bob"]
    assert query.words == Disjunction((Conjunction((phrase("hello"),)),))


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2024", instant(2024, 1, 1)),
        ("2024-2", instant(2024, 2, 1)),
        ("2024-02-29", instant(2024, 2, 29)),
        ("7d", NOW - 7 * DAY),
        ("3h", NOW - 3 * HOUR),
        ("2w", NOW - 14 * DAY),
        ("1m", NOW - 30 * DAY),
        ("1y", NOW - 365 * DAY),
        ("today", instant(2026, 5, 31)),
        ("Yesterday", instant(2026, 5, 30)),
    ],
)
def test_dates_of_all_forms_are_read(text: str, at: int) -> None:
    query = parse_query(f"before:{text}", now=NOW)
    assert [each.at for each in query.filters] == [at]


def test_dates_are_read_in_the_given_time_zone() -> None:
    (given_filter,) = parse_query("after:today", now=NOW, zone=ZoneInfo("Pacific/Auckland")).filters
    assert given_filter.at == instant(2026, 5, 31, 12)


@pytest.mark.parametrize("value", ["2024-02-31", "0000", "soon", "2024-1-1-1", "d", "99999y"])
def test_a_wrong_date_is_a_note_and_not_an_error(value: str) -> None:
    query = parse_query(f"word before:{value}", now=0)
    if value == "99999y":
        assert query.filters
        return
    assert query.filters == ()
    assert value in query.notes[0]
    assert query.words.nodes


@pytest.mark.parametrize("text", ["has:nothing", "is:odd", "role:nobody"])
def test_an_unknown_value_of_a_filter_is_a_note_that_lists_the_known_values(text: str) -> None:
    query = parse_query(text)
    assert query.is_empty
    assert "takes" in query.notes[0]


def test_a_day_before_the_calendar_begins_is_a_note() -> None:
    assert parse_query("after:yesterday", now=-(1 << 62)).notes


def test_a_text_without_words_is_a_note() -> None:
    assert parse_query("???").notes
    assert parse_query("  ").notes == ()
    assert parse_query("???").is_empty


def test_a_pasted_page_is_searched_by_its_first_words() -> None:
    text = " ".join(f"w{index}" for index in range(WORDS_MAX + 1))
    query = parse_query(text + " OR x")
    assert sum(len(each.nodes) for each in query.words.nodes) == WORDS_MAX
    assert str(WORDS_MAX) in query.notes[0]


@pytest.mark.parametrize(
    "piece", ["a OR ", "NOT ", "AND ", "in:x ", "-a* ", 'x"', "a", "桂", "before:x ", "NOT in:x OR "]
)
def test_only_the_beginning_of_a_very_long_text_is_parsed(piece: str) -> None:
    query = parse_query(piece * 190_000)
    assert query == parse_query(piece * (CHARS_MAX + 1))
    assert f"Only the first {CHARS_MAX:,} characters of this text were searched for." in query.notes
    assert len(query.filters) <= FILTERS_MAX
    assert parse_query("a" * CHARS_MAX).notes == ()


def test_negated_phrases_are_not_positive() -> None:
    assert list(parse_query("a -b OR c").positive_phrases()) == [phrase("a"), phrase("c")]
