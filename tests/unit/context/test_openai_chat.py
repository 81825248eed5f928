"""Conversion to and from OpenAI's chat format."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.core.context.rules.call_pairs import NO_RESULT
from keryx.core.context.rules.openai_chat import from_openai, to_openai
from keryx.core.conversations.rules.message import (
    MediaPart,
    NewMessage,
    Part,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    UnknownPart,
    text_message,
)
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
        {"role": "assistant", "content": "done", "reasoning_content": "hm"},
        {"role": "system", "content": "be kind"},
    ],
)
def test_a_chat_message_survives_both_conversions(chat: dict[str, Any]) -> None:
    assert to_openai([from_openai(chat)]) == [chat]


@pytest.mark.parametrize("content", ["file text", [{"type": "text", "text": "rich"}]])
@pytest.mark.parametrize("said", [None, "wait"])
def test_a_call_and_its_result_survive_both_conversions(content: Any, said: str | None) -> None:
    chat: list[dict[str, Any]] = [
        {"role": "assistant", "content": said, "tool_calls": [CALL, {**CALL, "id": "c2"}]},
        {"role": "tool", "tool_call_id": "c1", "content": content},
        {"role": "tool", "tool_call_id": "c2", "content": "other"},
    ]
    assert to_openai([from_openai(each) for each in chat]) == chat


def test_every_call_is_followed_by_its_one_result() -> None:
    calls: list[Any] = [CALL, CALL, CALL]
    called = from_openai({"role": "assistant", "content": None, "tool_calls": calls})
    late = [from_openai({"role": "tool", "tool_call_id": "c1", "content": text}) for text in "ab"]
    lost = NewMessage(role="tool", parts=(ToolResultPart(call_id="gone", name="look", output=["x"]),))
    chat = to_openai([called, text_message("user", "well?"), *late, lost])
    assert [each.get("tool_call_id") or each["content"] for each in chat] == [
        None,
        "c1",
        "c1_2",
        "c1_3",
        "well?",
        'Keryx reports the result of an earlier call of look:\n["x"]',
    ]
    assert [each["content"] for each in chat[1:4]] == ["a", "b", NO_RESULT]


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
def test_every_dialect_is_read(chat: dict[str, Any], parts: tuple[Part, ...]) -> None:
    assert from_openai(chat).parts == parts


@pytest.mark.parametrize("arguments", ['{"a":', "[1]", '"text"', '{"a":NaN}', '{"a":1e999}', "[" * 100_000])
def test_arguments_that_are_not_an_object_stay_the_model_s_text(arguments: str) -> None:
    chat: dict[str, Any] = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{**CALL, "function": {"name": "f", "arguments": arguments}}],
    }
    message = from_openai(chat)
    assert message.parts == (ToolCallPart(call_id="c1", name="f", arguments=arguments),)
    assert to_openai([message])[0] == chat


def test_arguments_given_as_an_object_stay_unchanged() -> None:
    chat: dict[str, Any] = {
        "role": "assistant",
        "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"a": 1}}}],
    }
    assert from_openai(chat).parts == (ToolCallPart(call_id="c", name="f", arguments={"a": 1}),)


@pytest.mark.parametrize("role", [None, "robot", ["user"]])
def test_an_unknown_role_is_refused(role: Any) -> None:
    with pytest.raises(InvalidValue, match="is not one of user, assistant"):
        from_openai({"role": role, "content": "x"})


def test_outputs_that_are_not_text_go_out_as_json() -> None:
    calls = tuple(ToolCallPart(call_id=no, name="f", arguments={}) for no in "123")
    outputs: list[Any] = [{"a": 1}, [1, 2], "x"]
    results = tuple(
        ToolResultPart(call_id=call.call_id, name="f", output=output)
        for call, output in zip(calls, outputs, strict=True)
    )
    # A result may also be in the same message as its call.
    for spoken in (
        [NewMessage(role="assistant", parts=calls), NewMessage(role="tool", parts=results)],
        [NewMessage(role="assistant", parts=(*calls, *results))],
    ):
        assert [each["content"] for each in to_openai(spoken)] == [None, '{"a":1}', "[1,2]", "x"]


def test_images_and_texts_are_shown_and_other_media_are_named() -> None:
    bill = MediaPart(media_type="application/pdf", blob="ab" * 32, name="bill.pdf")
    image, note = MediaPart(media_type="image/png", blob="cd" * 32), "ef" * 32
    text = MediaPart(media_type="text/plain", blob=note, name="note.txt")
    long = MediaPart(media_type="text/plain", blob="01" * 32)
    media = {"ab" * 32: b"%PDF", "cd" * 32: b"\x89PNG", note: b"dear", "01" * 32: b"a" * 100_001}
    message = NewMessage(role="user", parts=(bill, image, text, long))
    assert to_openai([message], media=media)[0]["content"] == [
        {"type": "text", "text": "[bill.pdf]"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
        {"type": "text", "text": "[note.txt]\ndear"},
        {"type": "text", "text": f"[text/plain]\n{'a' * 100_000}\n[…]"},
    ]
    named = [{"type": "text", "text": "[image/png]"}]
    assert to_openai([replace(message, parts=(image,))])[0]["content"] == named
    assert to_openai([replace(message, role="assistant", parts=(image,))], media=media)[0]["content"] == named


def test_thinking_is_only_the_assistant_s() -> None:
    thought = NewMessage(role="user", parts=(ThinkingPart(text="secret"), TextPart(text="hi")))
    assert to_openai([thought]) == [{"role": "user", "content": "hi"}]


@given(
    st.dictionaries(
        st.sampled_from(["content", "tool_calls", "name", "refusal"]), st.text() | st.lists(st.text())
    )
)
@settings(max_examples=100)
def test_any_chat_message_survives_conversion_out_and_in_again(chat: dict[str, Any]) -> None:
    once = from_openai({"role": "assistant", **chat})
    (out,) = to_openai([once])
    assert to_openai([from_openai(out)]) == [out]
