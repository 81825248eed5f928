"""Whether a text and its facts match a query."""

import pytest

from keryx.core.conversations.rules.part import (
    MediaPart,
    Part,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from keryx.core.search.rules.filters import (
    DocumentFacts,
    features,
    filters_match,
    is_author,
    same_name,
)
from keryx.core.search.rules.matching import TokenizedText, highlights, matches
from keryx.core.search.rules.parse_query import parse_query
from keryx.core.search.rules.snippet import densest_window

FACTS = DocumentFacts(
    session_id="20260101_000000_00000000",
    created_at=1_000,
    platform="telegram",
    role="user",
    author="Ana María Díaz",
    author_id=7,
    project="Rome Trip",
    tags=frozenset({"travel", "Fun"}),
    has=frozenset({"link"}),
    states=frozenset({"open", "pinned"}),
)


@pytest.mark.parametrize(
    ("query", "text", "is_match"),
    [
        ("hotel", "The Hotel!", True),
        ("hotel", "hotels", False),
        ("hot*", "hotels", True),
        ("the hot*", "a hotel", False),
        ("hotel rome", "Rome has a hotel", True),
        ('"hotel rome"', "Rome has a hotel", False),
        ('"a hotel"', "a b a hotel", True),
        ("nice-hot*", "a nice hotel", True),
        ("nice-hot*", "hotel nice", False),
        ("-hotel", "rome", True),
        ("rome -hotel", "rome hotel", False),
        ('-"the end"', "end the", True),
        ("a OR b", "b", True),
        ("a OR b", "c", False),
        ("C++", "I like C", False),
        ("c++", "C++17", True),
        ("C", "C++17", True),
        ("v1.2", "v1 2", True),
        ("数据库", "关系数据库系统", True),
        ("数据库", "数据 库", False),
        ("库", "数据库", True),
        ("", "anything", True),
    ],
)
def test_a_text_matches_a_query(query: str, text: str, *, is_match: bool) -> None:
    assert matches(parse_query(query).words, TokenizedText(text)) is is_match


@pytest.mark.parametrize(
    ("filters", "is_match"),
    [
        ("from:ana", True),
        ("from:diaz", True),
        ("from:7", True),
        ("from:bob", False),
        ("from:bob from:ana", True),
        ("-from:ana", False),
        ('in:"rome trip"', True),
        ("in:20260101_000000_00000000", True),
        ("in:paris", False),
        ("tag:fun", True),
        ("tag:#travel", True),
        ("tag:fun tag:work", False),
        ("source:Telegram", True),
        ("source:slack", False),
        ("role:user", True),
        ("role:tool", False),
        ("has:link", True),
        ("has:link has:code", False),
        ("is:pinned is:open", True),
        ("is:closed", False),
        ("-is:closed", True),
        ("before:1970-01-02", True),
        ("before:1970", False),
        ("after:1970", True),
        ("after:1970-01-02", False),
        ("-before:1970", True),
    ],
)
def test_filters_compare_the_facts_of_a_message(filters: str, *, is_match: bool) -> None:
    assert filters_match(parse_query(filters).filters, FACTS) is is_match


def test_a_session_card_has_no_author_role_or_project() -> None:
    card = DocumentFacts(session_id="s", created_at=0, platform="local")
    assert not filters_match(parse_query("from:ana").filters, card)
    assert not filters_match(parse_query("in:rome").filters, card)
    assert not filters_match(parse_query("role:user").filters, card)


def test_names_are_equal_without_case_accents_and_signs() -> None:
    assert same_name("Café", "cafe")
    assert same_name("!", "!")
    assert not same_name("!", "?")
    assert not is_author("?", author="?", author_id=None)
    assert not is_author("ana", author=None, author_id=3)


@pytest.mark.parametrize(
    ("query", "text", "shown"),
    [
        ("rome", "to rome and rome", [1, 3]),
        ('"a b"', "a x a b", [2, 3]),
        ("数据库", "新数据库", [1, 2, 3]),
        ("C++", "in C++ now", [1]),
        ("ro* -and", "to rome", [1]),
        ("has:link", "to rome", []),
    ],
)
def test_highlights_are_the_words_that_match(query: str, text: str, shown: list[int]) -> None:
    assert highlights(parse_query(query).positive_phrases(), TokenizedText(text)) == shown


def test_highlights_are_limited() -> None:
    assert highlights(parse_query("a").positive_phrases(), TokenizedText("a " * 100), limit=5) == [
        0,
        1,
        2,
        3,
        4,
    ]


def test_the_window_with_most_positions_is_chosen() -> None:
    assert densest_window([0, 50, 52, 54, 90], size=10) == 1
    assert densest_window([3], size=10) == 0


def test_features_are_the_values_of_has() -> None:
    parts: tuple[Part, ...] = (
        TextPart(text="see https://example.org\n```x```"),
        ThinkingPart(text="http://hidden"),
        ToolCallPart(call_id="1", name="t", arguments={}),
        ToolResultPart(call_id="1", name="t", output="no", is_error=True),
        MediaPart(media_type="image/png", url="x"),
        MediaPart(media_type="audio/ogg", url="x"),
        MediaPart(media_type="application/pdf", url="x"),
    )
    assert features(parts) == {"link", "code", "tool", "error", "image", "audio", "file"}
    assert features((ToolResultPart(call_id="1", name="t", output="fine"),)) == {"tool"}
    assert features((TextPart(text="plain"),)) == frozenset()
