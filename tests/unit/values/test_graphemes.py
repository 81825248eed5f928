"""Text is cut between visible characters."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.core.values.graphemes import cut, one_line, safe_end

FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
FLAG = "\U0001f1ee\U0001f1f9"


@pytest.mark.parametrize(
    ("text", "end", "kept"),
    [
        ("abc", 2, "ab"),
        ("abc", 9, "abc"),
        ("ab", 0, ""),
        ("e\u0301a", 1, ""),
        ("a" + FAMILY, 3, "a"),
        ("a" + FAMILY, 4, "a"),
        (FLAG + FLAG, 1, ""),
        (FLAG + FLAG, 2, FLAG),
        (FLAG + FLAG, 3, FLAG),
        ("👍\U0001f3fd!", 1, ""),
        ("\U0001f3f4\U000e0067\U000e007f!", 2, ""),
        ("a\r\nb", 2, "a"),
        ("a\rb", 2, "a\r"),
        ("\u1112\u1161\u11abx", 2, ""),
        ("\ud55c\u11ab", 1, ""),
        ("\u1100\u1100", 1, ""),
        ("a\u1161", 1, "a"),
        ("日本", 1, "日"),
        ("ни\u200cк", 2, "н"),
    ],
)
def test_the_end_moves_back_to_a_visible_boundary(text: str, end: int, kept: str) -> None:
    assert text[: safe_end(text, end)] == kept


def test_a_long_run_of_stacked_accents_is_cut() -> None:
    assert safe_end("a" + "\u0301" * 1000, 500) == 500


def test_a_short_text_is_not_cut() -> None:
    assert cut("hello", 5) == "hello"


def test_a_long_text_ends_with_an_ellipsis_within_the_limit() -> None:
    assert cut("hello world", 7) == "hello…"
    assert cut("hello world", 1) == "…"
    assert cut("hello world", 0) == ""


@given(st.text(max_size=60), st.integers(min_value=0, max_value=60))
@settings(max_examples=100)
def test_a_cut_text_is_never_longer_than_the_limit(text: str, limit: int) -> None:
    assert len(cut(text, limit)) <= limit
    assert text.startswith(cut(text, limit).removesuffix("…")) or len(text) <= limit


def test_one_line_folds_white_space_and_cuts() -> None:
    assert one_line("  a\n\tb  ", 10) == "a b"
    assert one_line("word " * 50, 9) == "word wor…"
    assert one_line("", 5) == ""


def test_one_line_skips_any_amount_of_white_space() -> None:
    assert one_line(" " * 5000 + "end", 10) == "end"
    assert one_line("a" + "\n" * 5000 + "b", 10) == "a b"


@given(st.text(alphabet="ab \n\u0301", max_size=400), st.integers(min_value=1, max_value=20))
def test_one_line_is_the_cut_of_the_whole_folded_text(text: str, limit: int) -> None:
    assert one_line(text, limit) == cut(" ".join(text.split()), limit)
