"""The chat format, both ways."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.domain.message import (
    MediaPart,
    NewMessage,
    Part,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    UnknownPart,
)
from keryx.domain.openai_chat import from_openai, to_openai
from keryx.errors import InvalidValue

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "high"}}
AUDIO = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}
CALL = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}}


@pytest.mark.parametrize(
    "chat",
    [
        {"role": "user", "content": "hi"},
        {"role": "user", "content": "hi", "name": "ana"},
        {"role": "user", "content": [{"type": "text", "text": "look"}, IMAGE, AUDIO]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}]},
        {"role": "assistant", "content": "done"},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "assistant", "content": "wait", "tool_calls": [CALL, CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "file text"},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "rich"}]},
        {"role": "system", "content": "be kind"},
    ],
)
def test_a_chat_message_goes_in_and_comes_out_the_same(chat: dict[str, Any]) -> None:
    assert to_openai(from_openai(chat)) == [chat]


@pytest.mark.parametrize(
    ("chat", "parts"),
    [
        ({"role": "developer", "content": "x"}, (TextPart(text="x"),)),
        ({"role": "user"}, ()),
        ({"role": "user", "content": ["x", 5]}, (TextPart(text="x"), UnknownPart(raw={"value": 5}))),
        ({"role": "user", "content": {"type": "odd"}}, (UnknownPart(raw={"type": "odd"}),)),
        ({"role": "assistant", "content": None, "refusal": "no"}, (TextPart(text="no"),)),
        (
            {"role": "assistant", "content": "a", "reasoning_content": "hm"},
            (ThinkingPart(text="hm"), TextPart(text="a")),
        ),
        (
            {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
            (ToolCallPart(call_id="f", name="f", arguments={}),),
        ),
        (
            {"role": "assistant", "tool_calls": [{"odd": 1}, 5]},
            (UnknownPart(raw={"odd": 1}), UnknownPart(raw={"value": 5})),
        ),
        (
            {"role": "function", "name": "f", "content": "r"},
            (ToolResultPart(call_id="f", name="f", output="r"),),
        ),
        ({"role": "tool", "content": None}, (ToolResultPart(call_id="", name="", output=None),)),
    ],
)
def test_every_dialect_is_understood(chat: dict[str, Any], parts: tuple[Part, ...]) -> None:
    assert from_openai(chat).parts == parts


@pytest.mark.parametrize("arguments", ['{"a":', "[1]", '"text"', '{"a":NaN}', '{"a":1e999}', "[" * 100_000])
def test_arguments_that_are_no_object_stay_the_model_s_own_text(arguments: str) -> None:
    chat: dict[str, Any] = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{**CALL, "function": {"name": "f", "arguments": arguments}}],
    }
    message = from_openai(chat)
    assert message.parts == (ToolCallPart(call_id="c1", name="f", arguments=arguments),)
    assert to_openai(message) == [chat]


def test_arguments_given_as_an_object_are_taken_as_they_are() -> None:
    chat: dict[str, Any] = {
        "role": "assistant",
        "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"a": 1}}}],
    }
    assert from_openai(chat).parts == (ToolCallPart(call_id="c", name="f", arguments={"a": 1}),)


@pytest.mark.parametrize("role", [None, "robot", ["user"]])
def test_an_unknown_role_is_refused(role: Any) -> None:
    with pytest.raises(InvalidValue, match="is not one of user, assistant"):
        from_openai({"role": role, "content": "x"})


def test_each_result_is_a_chat_message_of_its_own() -> None:
    first = ToolResultPart(call_id="1", name="f", output={"a": 1})
    second = ToolResultPart(call_id="2", name="f", output=[1, 2])
    third = ToolResultPart(call_id="3", name="f", output="x")
    assert to_openai(NewMessage(role="tool", parts=(first, second))) == [
        {"role": "tool", "tool_call_id": "1", "content": '{"a":1}'},
        {"role": "tool", "tool_call_id": "2", "content": "[1,2]"},
    ]
    assert to_openai(NewMessage(role="assistant", parts=(TextPart(text="a"), third))) == [
        {"role": "assistant", "content": "a"},
        {"role": "tool", "tool_call_id": "3", "content": "x"},
    ]


def test_thinking_never_goes_out_and_other_media_is_named() -> None:
    blob = MediaPart(media_type="application/pdf", blob="ab" * 32, name="bill.pdf")
    stored = MediaPart(media_type="image/png", blob="ab" * 32)
    message = NewMessage(role="user", parts=(ThinkingPart(text="secret"), blob, stored))
    assert to_openai(message) == [
        {
            "role": "user",
            "content": [{"type": "text", "text": "[bill.pdf]"}, {"type": "text", "text": "[image/png]"}],
        }
    ]


@given(
    st.dictionaries(
        st.sampled_from(["content", "tool_calls", "name", "refusal"]), st.text() | st.lists(st.text())
    )
)
@settings(max_examples=100)
def test_what_came_in_goes_out_and_in_again_the_same(chat: dict[str, Any]) -> None:
    once = from_openai({"role": "assistant", **chat})
    (out,) = to_openai(once)
    assert to_openai(from_openai(out)) == [out]
