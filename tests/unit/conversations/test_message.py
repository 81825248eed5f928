"""Messages: the stored text is lossless and its reader never raises; previews and searchable text."""

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.core.conversations.rules.message import (
    JsonValue,
    MediaPart,
    Message,
    NewMessage,
    Part,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    UnknownPart,
    decode_parts,
    encode_parts,
    preview_of,
    search_text,
    text_message,
    text_of,
    tool_call_count,
)
from keryx.core.values.turn_states import STEP_EFFECTS
from keryx.errors import InvalidValue

BLOB = "ab" * 32

# Surrogates, alone and in pairs that Python does not join, NUL, and backslashes that look like escapes.
any_text = st.text(
    st.characters() | st.sampled_from('\ud83d\ude00\udfff\x00\\"u😀漢\u2028'),
    max_size=20,
)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(10**400), max_value=10**400)
    | st.floats(allow_nan=False, allow_infinity=False)
    | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)
maybe_text = st.none() | any_text
parts_lists = st.lists(
    st.one_of(
        st.builds(TextPart, text=any_text),
        st.builds(ThinkingPart, text=any_text, signature=maybe_text),
        st.builds(
            ToolCallPart,
            call_id=any_text,
            name=any_text,
            arguments=json_values,
            effect=st.none() | st.sampled_from(STEP_EFFECTS),
        ),
        st.builds(
            ToolResultPart, call_id=any_text, name=any_text, output=json_values, is_error=st.booleans()
        ),
        st.builds(MediaPart, media_type=any_text, url=any_text, name=maybe_text, detail=maybe_text),
        st.builds(MediaPart, media_type=any_text, blob=st.just(BLOB), size_bytes=st.integers(0, 2**62)),
        st.builds(
            UnknownPart,
            raw=st.dictionaries(
                st.sampled_from(["t", "raw", "text", "value"]) | any_text, json_values, max_size=3
            ),
        ),
    ),
    max_size=4,
).map(tuple)


def call(name: str = "search", arguments: JsonValue = None) -> ToolCallPart:
    return ToolCallPart(call_id="c1", name=name, arguments=arguments)


@given(parts_lists)
@settings(max_examples=100)
def test_stored_parts_are_read_back_unchanged(parts: tuple[Part, ...]) -> None:
    encoded = encode_parts(parts)
    assert decode_parts(encoded) == parts
    json.loads(encoded)


@given(parts_lists)
@settings(max_examples=100)
def test_stored_text_is_utf8_without_nul(parts: tuple[Part, ...]) -> None:
    assert b"\x00" not in encode_parts(parts).encode("utf-8")


@given(st.text() | st.from_regex(r'[\[{"][\\udn\]}":,0-9eE+ -]{0,30}'))
@settings(max_examples=100)
def test_reading_any_text_never_raises(text: str) -> None:
    parts = decode_parts(text)
    assert decode_parts(encode_parts(parts)) == parts


@given(st.text('"\\nu0a 漢\n\x00'))
def test_a_bare_string_is_read_as_a_json_parser_reads_it(inner: str) -> None:
    for stored_as in (f'"{inner}"', f'"{inner}'):
        try:
            value, end = json.JSONDecoder(strict=False).raw_decode(stored_as)
        except ValueError:
            value, end = "", 0
        assert stored(stored_as).text == (value if end == len(stored_as) else "")


def test_one_text_is_stored_as_a_bare_json_string() -> None:
    assert encode_parts((TextPart(text="héllo 漢字"),)) == '"héllo 漢字"'
    assert encode_parts((TextPart(text="a"), TextPart(text="b"))) == '["a","b"]'
    assert encode_parts(()) == "[]"


def test_nul_and_surrogates_are_escaped() -> None:
    assert encode_parts((TextPart(text="漢\x00\ud800"),)) == '"漢\\u0000\\ud800"'


def test_two_surrogates_side_by_side_are_not_joined() -> None:
    parts = (TextPart(text="\ud83d\ude00 and \U0001f600 and \\ud83d"),)
    assert decode_parts(encode_parts(parts)) == parts


def test_a_text_of_a_megabyte_is_read_back_unchanged() -> None:
    parts = (TextPart(text="漢 \x00 \ud800 " * 140_000),)
    assert decode_parts(encode_parts(parts)) == parts


@pytest.mark.parametrize(
    "torn",
    ["", '"abc', '["a",', "[1", "{}", "5", "null", '"a" "b"', "[NaN", "[" * 100_000, '"\\ud', "\x00"],
)
def test_a_damaged_text_becomes_one_unknown_part_that_holds_it(torn: str) -> None:
    assert decode_parts(torn) == (UnknownPart(raw={"torn": torn}),)


@pytest.mark.parametrize(
    "item",
    [
        {"t": "call", "id": "c1"},
        {"t": "call", "id": 1, "name": "a", "args": {}},
        {"t": "call", "id": "c1", "name": "a", "args": {}, "effect": "twice"},
        {"t": "result", "id": "c1", "name": "a", "out": "", "error": "yes"},
        {"t": "think", "text": "a", "signature": 5},
        {"t": "media", "type": "image/png"},
        {"t": "media", "type": "image/png", "blob": "zz"},
        {"t": "media", "type": "image/png", "url": "u", "size": -1},
        {"t": "unknown", "raw": 5},
        {"t": "hologram", "x": 1},
        {"t": 7},
    ],
)
def test_an_unreadable_part_is_kept_and_hides_no_other(item: dict[str, JsonValue]) -> None:
    parts = decode_parts(json.dumps(["before", item, "after"]))
    assert parts == (TextPart(text="before"), UnknownPart(raw=item), TextPart(text="after"))


def test_a_plain_value_among_the_parts_is_kept() -> None:
    assert decode_parts('["a",5]') == (TextPart(text="a"), UnknownPart(raw={"value": 5}))


@pytest.mark.parametrize("item", ["1e999", "NaN", '{"t":"x","deep":' + "[" * 300 + "]" * 300 + "}"])
def test_a_part_that_cannot_be_constructed_hides_no_other(item: str) -> None:
    encoded = f'["before",{item}]'
    assert decode_parts(encoded) == (TextPart(text="before"), UnknownPart(raw={"torn": encoded}))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_parts_refuse_numbers_json_cannot_hold(value: float) -> None:
    with pytest.raises(InvalidValue, match="arguments of a tool call"):
        call(arguments={"x": value})
    with pytest.raises(InvalidValue, match="output of a tool result"):
        ToolResultPart(call_id="c", name="n", output=[value])


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (TextPart, {"text": 5}),
        (ThinkingPart, {"text": None}),
        (ToolResultPart, {"call_id": "c", "name": "n", "output": "", "is_error": 1}),
        (MediaPart, {"media_type": "image/png", "url": "u", "blob": BLOB}),
        (MediaPart, {"media_type": "image/png", "blob": BLOB.upper()}),
        (MediaPart, {"media_type": "image/png", "blob": BLOB, "size_bytes": True}),
        (UnknownPart, {"raw": ["a"]}),
        (NewMessage, {"role": "robot", "parts": ()}),
        (NewMessage, {"role": "user", "parts": []}),
        (NewMessage, {"role": "user", "parts": (), "input_tokens": -1}),
        (NewMessage, {"role": "user", "parts": (), "cost_micros": 1.5}),
    ],
)
def test_a_wrong_value_cannot_be_constructed(kind: type[Any], fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        kind(**fields)


MIXED: tuple[Part, ...] = (
    ThinkingPart(text="hidden"),
    TextPart(text="Let me  look."),
    call(arguments={"path": "a.txt"}),
    ToolResultPart(call_id="c1", name="read", output={"text": "content", "size": 7}),
    MediaPart(media_type="image/png", url="https://x.example/a", name="cat.png"),
    MediaPart(media_type="image/gif", url="https://x.example/b"),
    UnknownPart(raw={"torn": "[half"}),
)


def test_the_text_joins_the_text_parts() -> None:
    assert text_of((TextPart(text="a"),)) == "a"
    assert text_of((TextPart(text="a"), call(), TextPart(text="b"))) == "a\nb"


def test_search_text_contains_everything_except_thinking() -> None:
    assert search_text((TextPart(text="a"),), lambda _: None) == "a"
    assert search_text(MIXED, lambda _: None).split("\n") == [
        "Let me  look.",
        "search",
        "path",
        "a.txt",
        "read",
        "text",
        "content",
        "size",
        "7",
        "cat.png",
        "torn",
        "[half",
    ]


def test_a_preview_is_one_line_about_the_message() -> None:
    assert preview_of(MIXED) == "Let me look. [search] [result of read] [cat.png] [image/gif]"
    assert preview_of((ToolResultPart(call_id="c", name="n", output="two\n lines"),)) == "two lines"
    assert preview_of(()) == ""


def test_a_long_preview_is_cut_to_the_limit() -> None:
    assert preview_of((TextPart(text="word " * 1000),), limit=12) == "word word w…"
    assert preview_of((TextPart(text="x" * 12),), limit=12) == "x" * 12
    assert preview_of((TextPart(text="x" * 13),), limit=12) == "x" * 11 + "…"
    assert preview_of((TextPart(text="a b c d e f g"),), limit=13) == "a b c d e f g"


def test_calls_are_counted_in_the_message_that_made_them() -> None:
    assert tool_call_count((TextPart(text="a"),)) == 0
    assert tool_call_count((TextPart(text="a"), call(), call())) == 2
    assert tool_call_count((ToolResultPart(call_id="c", name="n", output=""),)) == 0


def stored(body: str) -> Message:
    return Message(
        id=1,
        session_id="20260101_000000_00000000",
        branch_no=0,
        seq=1,
        turn_id=None,
        role="assistant",
        body=body,
        author=None,
        author_id=None,
        input_tokens=0,
        cached_tokens=0,
        output_tokens=0,
        thinking_tokens=0,
        cost_micros=0,
        finish_reason=None,
        created_at=0,
    )


def test_a_stored_message_has_its_text_and_calls() -> None:
    message = stored(encode_parts((TextPart(text="a"), call())))
    assert (message.text, message.tool_calls) == ("a", (call(),))


@pytest.mark.parametrize(
    "parts",
    [
        (TextPart(text="a"),),
        (TextPart(text=""),),
        (TextPart(text="\ud800\x00"),),
        (TextPart(text="a"), TextPart(text="b")),
        (),
    ],
)
def test_the_text_of_a_stored_message_is_the_text_of_its_parts(parts: tuple[Part, ...]) -> None:
    assert stored(encode_parts(parts)).text == text_of(parts)


@pytest.mark.parametrize("torn", ['"torn', '"a" and more', "", "[1", '"\\ud80'])
def test_a_damaged_message_has_no_text_and_shows_the_stored_text(torn: str) -> None:
    message = stored(torn)
    assert message.text == ""
    assert message.parts == (UnknownPart(raw={"torn": torn}),)


def test_a_text_message_has_one_text_part() -> None:
    assert text_message("user", "hi") == NewMessage(role="user", parts=(TextPart(text="hi"),))
