"""Estimates of tokens: a longer text never has fewer, CJK has more, attachments count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keryx.core.context.rules.cover import Cover
from keryx.core.context.rules.token_count import (
    Counted,
    count_attachments,
    count_item,
    count_json,
    count_text,
)
from keryx.core.conversations.rules.message import Message, NewMessage, encode_parts
from keryx.core.conversations.rules.part import (
    MediaPart,
    Part,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    UnknownPart,
)

COVER = Cover(
    session_id="s",
    no=1,
    branch_no=0,
    first_seq=1,
    last_seq=9,
    summary="abcd",
    tokens_before=9,
    tokens_after=2,
)
IMAGE = MediaPart(media_type="image/png", blob="a" * 64)


def stored(*parts: Part) -> Message:
    return Message(1, "s", 0, 1, "user", encode_parts(parts), None, None, None, 0, 0, 0, 0, 0, None, 0)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("abcd", 1),
        ("abcde", 2),
        ("x" * 4_000, 1_000),
        ("漢字", 2),
        ("漢字 abc", 3),
        ("ж" * 3, 2),
    ],
)
def test_four_ascii_characters_or_three_other_bytes_are_one_token(text: str, tokens: int) -> None:
    assert count_text(text) == tokens


@given(st.text(st.characters(codec=None)), st.text(st.characters(codec=None)))
def test_a_longer_text_never_has_fewer_tokens(one: str, other: str) -> None:
    assert (
        max(count_text(one), count_text(other))
        <= count_text(one + other)
        <= count_text(one) + count_text(other)
    )


def test_every_kind_of_part_counts() -> None:
    empty = count_item(stored())
    for part in (
        TextPart(text="some words"),
        ThinkingPart(text="hm, hm"),
        ToolCallPart(call_id="1", name="look", arguments={"at": "it"}),
        ToolResultPart(call_id="1", name="look", output="seen"),
        ToolResultPart(call_id="1", name="look", output={"seen": [1, 2]}),
        UnknownPart(raw={"t": "later"}),
        IMAGE,
    ):
        assert count_item(stored(part, part)) > count_item(stored(part)) > empty
        assert count_item(NewMessage(role="user", parts=(part, part))) == count_item(stored(part, part))
    assert count_item(COVER) > 20


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        (IMAGE, 1_000),
        (MediaPart(media_type="application/pdf", blob="a" * 64), 1_500),
        (MediaPart(media_type="application/pdf", blob="a" * 64, size_bytes=400_000), 10_000),
        (MediaPart(media_type="text/plain", blob="a" * 64, size_bytes=4_000), 1_012),
        (MediaPart(media_type="video/mp4", url="https://x/y", size_bytes=10**9), 12),
    ],
)
def test_attachments_count_by_their_type_and_size(part: MediaPart, tokens: int) -> None:
    said: list[Counted] = [COVER, stored(TextPart(text="look")), stored(TextPart(text="at"), part)]
    assert count_attachments(said) == tokens


def test_json_counts_as_its_text() -> None:
    assert count_json({"a": ["b", 1]}) == count_text('{"a":["b",1]}')
