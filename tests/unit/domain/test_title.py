"""Titles: who wins, and what a first message gives."""

import pytest

from keryx.domain.message import MediaPart, TextPart
from keryx.domain.title import TitleBy, clean_title, may_retitle, model_title_due, title_from, titled
from keryx.errors import InvalidValue

BY: tuple[TitleBy, ...] = ("person", "text", "model")


def test_a_person_s_title_is_never_overwritten_but_by_a_person() -> None:
    allowed = {(old, new) for old in (None, *BY) for new in BY if may_retitle(old, new)}
    assert allowed == {
        (None, "person"),
        (None, "text"),
        (None, "model"),
        ("person", "person"),
        ("text", "person"),
        ("model", "person"),
        ("model", "text"),
    }


def test_the_first_text_is_the_title_on_one_line() -> None:
    assert title_from((TextPart(text="  Trip \n\t to Rome "),)) == "Trip to Rome"


def test_a_long_text_is_cut_to_64_characters() -> None:
    assert title_from((TextPart(text="word " * 100_000),)) == "word " * 12 + "wor…"
    assert title_from((TextPart(text="x" * 64),)) == "x" * 64


def test_a_title_does_not_tear_a_visible_character() -> None:
    family = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
    assert title_from((TextPart(text="x" * 61 + family),)) == "x" * 61 + "…"


def test_a_message_without_text_gives_no_title() -> None:
    assert title_from((MediaPart(media_type="image/png", url="u"),)) is None
    assert title_from((TextPart(text=" \n "),)) is None


def test_the_model_is_asked_after_the_first_exchange_when_nothing_else_named_the_session() -> None:
    assert model_title_due(None, user_messages=1, assistant_messages=1)
    assert not model_title_due(None, user_messages=1, assistant_messages=0)
    assert not model_title_due(None, user_messages=0, assistant_messages=1)
    assert not model_title_due("text", user_messages=1, assistant_messages=1)


def test_a_given_title_is_one_line_and_not_empty() -> None:
    assert clean_title(" My\n trip ") == "My trip"
    assert len(clean_title("x" * 500)) == 200
    with pytest.raises(InvalidValue, match="the title is empty"):
        clean_title(" \n")


@pytest.mark.parametrize(
    ("wanted", "found"),
    [("tea", [0]), ("TEA  time", [1]), ("te", [0, 1]), ("time", [1]), ("coffee", [])],
)
def test_a_title_is_meant_whole_before_its_beginning_and_that_before_a_piece(
    wanted: str, found: list[int]
) -> None:
    assert titled(["Tea", "tea time", None], wanted) == found
