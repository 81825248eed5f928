"""Titles: which author wins, and the title from the first message."""

import pytest

from keryx.core.conversations.rules.message import MediaPart, TextPart
from keryx.core.conversations.rules.title import (
    MODEL_TITLE_MESSAGES_MAX,
    TitleBy,
    clean_title,
    match_titles,
    may_retitle,
    model_title_due,
    model_title_of,
    title_from,
)
from keryx.errors import InvalidValue

BY: tuple[TitleBy, ...] = ("person", "text", "model")


def test_only_a_person_overwrites_a_person_s_title() -> None:
    allowed = {(old, new) for old in (None, *BY) for new in BY if may_retitle(old, new)}
    assert allowed == {
        (None, "person"),
        (None, "text"),
        (None, "model"),
        ("person", "person"),
        ("text", "person"),
        ("model", "person"),
        ("text", "model"),
    }


def test_the_title_is_the_first_text_on_one_line() -> None:
    assert title_from((TextPart(text="  Trip \n\t to Rome "),)) == "Trip to Rome"


def test_a_long_text_is_cut_to_64_characters() -> None:
    assert title_from((TextPart(text="word " * 100_000),)) == "word " * 12 + "wor…"
    assert title_from((TextPart(text="x" * 64),)) == "x" * 64


def test_a_title_does_not_split_a_visible_character() -> None:
    family = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
    assert title_from((TextPart(text="x" * 61 + family),)) == "x" * 61 + "…"


def test_a_message_without_text_gives_no_title() -> None:
    assert title_from((MediaPart(media_type="image/png", url="u"),)) is None
    assert title_from((TextPart(text=" \n "),)) is None


def test_the_model_is_asked_for_a_title_only_in_a_young_conversation_without_a_given_title() -> None:
    assert model_title_due(None, messages=2)
    assert model_title_due("text", messages=MODEL_TITLE_MESSAGES_MAX)
    assert not model_title_due("text", messages=MODEL_TITLE_MESSAGES_MAX + 1)
    assert not model_title_due("model", messages=2)
    assert not model_title_due("person", messages=2)


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("Trip to Rome", "Trip to Rome"),
        ('  "Trip to  Rome." \n', "Trip to Rome"),
        ("\n\n# **Trip to Rome**\nIt is about a trip.", "Trip to Rome"),
        ("«Reise nach Rom»", "Reise nach Rom"),
        ("x" * 500, "x" * 63 + "…"),
        ("", None),
        (' "." \n\n', None),
    ],
)
def test_a_model_s_title_is_its_first_line_without_marks(answer: str, title: str | None) -> None:
    assert model_title_of(answer) == title


def test_a_given_title_is_one_line_and_not_empty() -> None:
    assert clean_title(" My\n trip ") == "My trip"
    assert len(clean_title("x" * 500)) == 200
    with pytest.raises(InvalidValue, match="the title is empty"):
        clean_title(" \n")


@pytest.mark.parametrize(
    ("wanted", "found"),
    [("tea", [0]), ("TEA  time", [1]), ("te", [0, 1]), ("time", [1]), ("coffee", [])],
)
def test_an_equal_title_wins_over_a_prefix_and_a_prefix_over_a_substring(
    wanted: str, found: list[int]
) -> None:
    assert match_titles(["Tea", "tea time", None], wanted) == found
