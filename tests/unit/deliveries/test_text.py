"""Cutting texts into messages: within the limit, nothing lost, nothing torn."""

import re
import time
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.core.conversations.rules.part import MediaPart, TextPart, ThinkingPart
from keryx.core.deliveries.rules.pieces import MediaPiece, TextPiece, TextUnit
from keryx.core.deliveries.rules.spans import Span, find_spans
from keryx.core.deliveries.rules.text import cut_text, text_pieces, text_size
from keryx.core.values.graphemes import safe_end
from keryx.errors import InvalidValue

UNITS: tuple[TextUnit, ...] = get_args(TextUnit)
FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
FLAG = "\U0001f1ee\U0001f1f9"

ATOMS = [
    "a",
    "b. ",
    "word",
    " ",
    "  ",
    "\n",
    "\n\n",
    "\r\n",
    "日本",
    "e\u0301",
    FAMILY,
    FLAG,
    "\ud800",
    "\x00",
    ".",
]
FENCES = ["```", "\n```\n", "\n```py\n", "\n~~~\n", "\n````\n", "```x`y", " ```", "\n   ~~~ a b\n", "code\n"]

plain = st.lists(st.sampled_from(ATOMS), max_size=60).map("".join)
anything = st.lists(st.one_of(st.sampled_from(ATOMS + FENCES), st.text(max_size=8)), max_size=60).map("".join)
limits = st.integers(min_value=4, max_value=90)
units = st.sampled_from(UNITS)


def solid(text: str) -> str:
    """The text without what may be left out at a cut."""
    return "".join(text.split())


def open_block(piece: str) -> str | None:
    """The marks of the code block that a reader sees open at the end of a message."""
    opened: str | None = None
    for line in piece.split("\n"):
        match = re.fullmatch(r" {0,3}(?:(`{3,})([^`]*)|(~{3,})(.*))", line)
        if match is None:
            continue
        marks, info = match[1] or match[3], match[2] or match[4] or ""
        if opened is None:
            opened = marks
        elif marks.startswith(opened) and not info.strip():
            opened = None
    return opened


@given(anything, limits, units)
@settings(max_examples=300, deadline=None)
def test_every_piece_is_within_the_limit_and_says_something(text: str, limit: int, unit: TextUnit) -> None:
    pieces = cut_text(text, text_max=limit, unit=unit)
    assert [piece for piece in pieces if text_size(piece, unit) > limit or not piece.strip()] == []
    assert bool(pieces) == bool(text.strip())


@given(plain, limits, units)
@settings(max_examples=200, deadline=None)
def test_nothing_is_lost_but_white_space_at_the_cuts(text: str, limit: int, unit: TextUnit) -> None:
    pieces = cut_text(text, text_max=limit, unit=unit)
    assert solid("".join(pieces)) == solid(text)
    at = 0
    for piece in pieces:
        found = text.find(piece, at)
        assert found >= at
        assert not text[at:found].strip()
        at = found + len(piece)


dense = st.lists(st.sampled_from(["e\u0301", FAMILY, FLAG, "日", "a"]), min_size=20, max_size=60).map("".join)


@given(plain | dense, st.integers(min_value=40, max_value=90), units)
@settings(max_examples=200, deadline=None)
def test_no_visible_character_is_torn(text: str, limit: int, unit: TextUnit) -> None:
    at = 0
    for piece in cut_text(text, text_max=limit, unit=unit):
        at = text.index(piece, at)
        assert safe_end(text, at) == at or not text[at - 1 : at].strip()
        at += len(piece)
        assert safe_end(text, at) == at or not text[at : at + 1].strip()


blocks = st.tuples(
    st.sampled_from(["```py", "```", "~~~", "````", "   ```sh"]),
    st.lists(st.sampled_from(["a", "  b = 1", "", "long line of code here", "~~ x"]), max_size=12),
).map(lambda block: "\n".join([block[0], *block[1], block[0].strip().rstrip("pysh")]))
paragraphs = st.lists(
    st.sampled_from(["One. Two. Three.", "word " * 12, "x" * 50]), min_size=1, max_size=3
).map("\n\n".join)
documents = st.lists(st.one_of(blocks, paragraphs), max_size=8).map("\n".join)


@given(documents, st.integers(min_value=60, max_value=200), units)
@settings(max_examples=200, deadline=None)
def test_code_blocks_are_closed_and_opened_again(text: str, limit: int, unit: TextUnit) -> None:
    pieces = cut_text(text, text_max=limit, unit=unit)
    assert [piece for piece in pieces if open_block(piece)] == []
    unmarked = re.compile(r"```+(py|sh)?|~~~")
    assert solid(unmarked.sub("", "\n".join(pieces))) == solid(unmarked.sub("", text))


def test_a_code_block_goes_on_in_its_language_with_its_indentation() -> None:
    lines = [f"    call({number})" for number in range(10)]
    pieces = cut_text("Look:\n```python\n" + "\n".join(lines) + "\n```\nDone.", text_max=70)
    assert pieces[0] == "Look:\n```python\n    call(0)\n    call(1)\n    call(2)\n    call(3)\n```"
    assert all(piece.startswith("```python\n    call(") for piece in pieces[1:])
    assert pieces[-1].endswith("```\nDone.")
    assert [line for piece in pieces for line in piece.split("\n") if "call" in line] == lines


def test_a_code_block_begins_in_the_next_message_rather_than_with_nothing_in_it() -> None:
    pieces = cut_text("x" * 50 + "\n```python\n" + "y" * 30 + "\n```", text_max=65)
    assert pieces == ["x" * 50, "```python\n" + "y" * 30 + "\n```"]


def test_the_end_of_a_block_does_not_stand_alone() -> None:
    code = "a = 1\n" * 9
    assert cut_text(f"```\n{code}```\nAnd then a few words.", text_max=62) == [
        f"```\n{code}```",
        "And then a few words.",
    ]


def test_the_end_of_a_block_is_in_the_next_message_if_it_does_not_fit() -> None:
    pieces = cut_text("w w \n```\na = 1\na = 1\n```````\nAnd then.", text_max=26)
    assert pieces == ["w w \n```\na = 1\na = 1\n```", "```\n```````\nAnd then."]


def test_a_mark_that_never_closes_does_not_end_the_emphasis_around_it() -> None:
    assert find_spans("*a _b c* d", [(0, 10)]) == [Span(start=0, stop=8)]


def test_a_line_of_code_longer_than_a_message_is_parted() -> None:
    pieces = cut_text("```\n" + "x" * 100 + "\n```", text_max=40)
    assert [open_block(piece) for piece in pieces] == [None] * len(pieces)
    assert sum(piece.count("x") for piece in pieces) == 100


def test_a_frame_too_large_for_a_message_is_plain_text() -> None:
    text = "```" + "language" * 5 + "\ncode\n```"
    assert solid("".join(cut_text(text, text_max=20))) == solid(text)
    assert "".join(cut_text("`" * 100, text_max=30)) == "`" * 100


def test_a_torn_line_that_only_looks_like_an_opening_is_closed_within_the_limit() -> None:
    pieces = cut_text("```" + "a" * 200 + "`" + "\n", text_max=60)
    assert max(map(len, pieces)) <= 60


def test_marks_within_a_line_do_not_become_a_block_at_the_start_of_a_message() -> None:
    pieces = cut_text("word " * 7 + "~~~ " + "more " * 7, text_max=35)
    assert not any(piece.startswith("~~~") for piece in pieces)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("First one.\n\nSecond one.\nThird line.", ["First one.\n\nSecond one.", "Third line."]),
        ("A first paragraph.\n\nA second.", ["A first paragraph.", "A second."]),
        ("One sentence here. Another one.", ["One sentence here.", "Another one."]),
        ("several words without any mark", ["several words without any", "mark"]),
        ("x" * 30, ["x" * 25, "x" * 5]),
        ("- a list of some items\n    - deeper", ["- a list of some items", "    - deeper"]),
        ("\n\nshort\n", ["short"]),
        (" \n ", []),
        (" " * 60 + "end", ["end"]),
    ],
)
def test_cuts_fall_where_a_reader_pauses(text: str, pieces: list[str]) -> None:
    assert [piece.rstrip() for piece in cut_text(text, text_max=25)] == pieces


WHOLES = [
    "[a link with words](https://example.org/a_(b)_c)",
    "![a picture](https://example.org/a.png)",
    '[titled](https://example.org "a title")',
    "`code with blanks`",
    "``code with ` in it``",
    "**bold words that are strong**",
    "*words that lean*",
    "_words that lean too_",
    "~~words struck out~~",
    "**bold with [a link](https://example.org) in it**",
    "https://example.org/a/long/path?with=a&query=too",
    "&lt;",
    "&#8217;",
]
written = st.lists(
    st.sampled_from([*WHOLES, "word", "A sentence of words.", "5 * 3", "a_name_here", "日本語の文"]),
    min_size=1,
    max_size=20,
).flatmap(
    lambda words: st.lists(
        st.sampled_from([" ", " ", "\n", "\n\n"]), min_size=len(words), max_size=len(words)
    ).map(lambda gaps: list(zip(words, gaps, strict=True)))
)


@given(written, st.integers(min_value=60, max_value=120))
@settings(max_examples=150, deadline=None)
def test_what_fits_into_a_message_by_itself_is_not_parted(written: list[tuple[str, str]], limit: int) -> None:
    pieces = cut_text("".join(word + gap for word, gap in written), text_max=limit)
    for whole in WHOLES:
        said = sum(word.count(whole) for word, _ in written)
        assert sum(piece.count(whole) for piece in pieces) == said, (whole, pieces)


@pytest.mark.parametrize(
    ("text", "limit", "pieces"),
    [
        (
            "Here is [a link with words](https://example.org/a).",
            46,
            ["Here is", "[a link with words](https://example.org/a)."],
        ),
        (
            "some text **bold words that are strong** on",
            34,
            ["some text", "**bold words that are strong** on"],
        ),
        ("**aaaaaaaaaa bb**xxxxxxxxx", 20, ["**aaaaaaaaaa bb**xxx", "xxxxxx"]),
        ("one &lt;tag&gt; two", 14, ["one &lt;tag", "&gt; two"]),
        (
            "see it (https://example.org/wiki/A_(b)) now",
            36,
            ["see it", "(https://example.org/wiki/A_(b)) now"],
        ),
        ("run `git commit -m all` in the folder", 22, ["run", "`git commit -m all` in", "the folder"]),
        ("[not a link] and **not bold, *or this", 20, ["[not a link] and", "**not bold, *or this"]),
        ("an *open one\n\nand* a closed one", 20, ["an *open one", "and* a closed one"]),
        ("words that \\*no snake_case\\* on", 20, ["words that \\*no", "snake_case\\* on"]),
    ],
)
def test_a_cut_falls_before_what_it_would_part(text: str, limit: int, pieces: list[str]) -> None:
    assert cut_text(text, text_max=limit) == pieces


def test_what_is_longer_than_a_message_is_cut_as_any_text() -> None:
    url = "https://example.org/" + "x" * 60
    pieces = cut_text(f"go {url} and on", text_max=40)
    assert pieces == ["go " + url[:37], url[37:77], url[77:] + " and on"]


def test_marks_in_a_code_block_pair_with_none_outside_it() -> None:
    assert cut_text("```\nint *p;\n```\nwords that follow *p here.", text_max=30) == [
        "```\nint *p;\n```",
        "words that follow *p here.",
    ]


def test_an_accent_on_a_blank_keeps_its_blank() -> None:
    assert cut_text("x" * 10 + " \u0301y", text_max=10) == ["x" * 10, " \u0301y"]


def test_a_visible_character_larger_than_a_message_is_torn_rather_than_lost() -> None:
    assert "".join(cut_text(FAMILY * 2, text_max=4, unit="bytes")) == FAMILY * 2


def test_a_limit_that_cannot_hold_a_character_is_refused() -> None:
    with pytest.raises(InvalidValue, match="text_max 3"):
        cut_text("a", text_max=3)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    "text",
    [
        "word " * 200_000,
        "x" * 1_000_000,
        " " * 1_000_000 + "x",
        "```py\n" + "line of code\n" * 80_000,
        "```\n" * 250_000,
        "`" * 1_000_000,
        "\u0301" * 1_000_000,
        FAMILY * 200_000,
        "[" * 1_000_000,
        "[a](b) " * 140_000,
        "* *a* ** _" * 100_000,
        ("[" * 1_000 + "](日)" * 1_000) * 200,
    ],
    ids=[
        "words",
        "letters",
        "blanks",
        "code",
        "fences",
        "marks",
        "accents",
        "families",
        "brackets",
        "links",
        "emphasis",
        "nested",
    ],
)
def test_a_megabyte_is_cut_in_no_time(text: str, unit: TextUnit) -> None:
    began = time.process_time()
    assert cut_text(text, text_max=4_096, unit=unit)
    # Hundredths of a second, tenths for texts made to be slow; the rest is for a machine that is busy.
    assert time.process_time() - began < 2.0


def test_media_keep_their_places_and_thoughts_are_not_told() -> None:
    media = MediaPart(media_type="image/png", url="https://example.org/a.png")
    parts = (TextPart(text="one two"), ThinkingPart(text="hm"), media, TextPart(text="three"))
    assert text_pieces(parts, text_max=5) == (
        TextPiece(text="one"),
        TextPiece(text="two"),
        MediaPiece(media=media),
        TextPiece(text="three"),
    )
