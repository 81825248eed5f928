"""Items of the Agents SDK come back as they were, and people see what they say."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.core.conversations.rules.message import (
    Message,
    NewMessage,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    encode_parts,
    search_text,
)
from keryx.errors import InvalidValue
from keryx.integrations.openai_agents import to_items, to_message

OUTPUT = {
    "id": "msg_1",
    "content": [
        {"annotations": [], "text": "At the hotel.", "type": "output_text", "logprobs": []},
        {"type": "refusal", "refusal": "no"},
        {"annotations": [{"url": "x"}], "text": "Rome", "type": "output_text"},
    ],
    "role": "assistant",
    "status": "completed",
    "type": "message",
}
ITEMS: list[dict[str, Any]] = [
    {"role": "user", "content": "Where were we?"},
    {"content": "in another order", "role": "user"},
    {"role": "developer", "content": "Be brief."},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "and this"}]},
    {"role": "user", "content": [{"type": "input_image", "image_url": "data:…", "detail": None}]},
    {"role": "user", "content": []},
    {"role": "user", "content": None},
    OUTPUT,
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{ "at":1}'},
    {
        "arguments": "{}",
        "call_id": "c1",
        "name": "look",
        "type": "function_call",
        "id": "fc",
        "status": "done",
    },
    {"type": "function_call_output", "call_id": "c1", "output": "a map"},
    {"call_id": "c1", "output": [{"type": "input_text", "text": "a map"}], "type": "function_call_output"},
    {"type": "computer_call_output", "call_id": "c2", "output": {"type": "screenshot", "n": None}},
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "Hm."}],
        "encrypted_content": "…",
    },
    {"type": "reasoning", "id": "rs_2", "summary": []},
    {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"query": "rome"}},
    {"type": "item_reference", "id": "x"},
    {"nothing": "known", "role": "ghost"},
    {"role": None, "content": "text"},
    {},
]


def stored(message: NewMessage) -> Message:
    return Message(
        1, "s", 0, 1, message.role, encode_parts(message.parts), None, None, None, 0, 0, 0, 0, 0, None, 0
    )


@pytest.mark.parametrize("item", ITEMS, ids=str)
def test_an_item_comes_back_as_it_was(item: dict[str, Any]) -> None:
    [found] = to_items(stored(to_message(item)))
    assert found == item
    assert list(found) == list(item)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    ["type", "role", "content", "call_id", "name", "arguments", "output", "summary", "text", "id"]
)
WORDS = st.sampled_from(
    ["function_call", "function_call_output", "reasoning", "user", "assistant", "message"]
)


@given(st.dictionaries(KEYS, JSON | WORDS | st.lists(st.dictionaries(KEYS, JSON, max_size=3), max_size=3)))
@settings(max_examples=300)
def test_any_item_comes_back_as_it_was(item: dict[str, Any]) -> None:
    assert to_items(stored(to_message(item))) == [item]


def test_texts_are_shown_and_found_and_the_rest_is_not() -> None:
    message = stored(to_message(OUTPUT))
    assert message.text == "At the hotel.\nRome"
    assert "completed" not in search_text(message.parts, lambda _: None)
    call = stored(to_message(ITEMS[9]))
    assert call.tool_calls == (ToolCallPart(call_id="c1", name="look", arguments="{}"),)
    assert stored(to_message(ITEMS[10])).role == "tool"


def test_plain_items_are_plain_messages() -> None:
    assert to_message(ITEMS[0]) == NewMessage(role="user", parts=(TextPart(text="Where were we?"),))
    assert len(to_message(ITEMS[8]).parts) == len(to_message(ITEMS[10]).parts) == 1


def test_other_messages_become_items_with_the_same_content() -> None:
    call = ToolCallPart(call_id="c", name="look", arguments={"at": 1})
    message = NewMessage(role="assistant", parts=(TextPart(text="Let me see."), call))
    assert to_items(stored(message)) == [
        {"role": "assistant", "content": "Let me see."},
        {"type": "function_call", "call_id": "c", "name": "look", "arguments": '{"at": 1}'},
    ]

    result = NewMessage(role="tool", parts=(ToolResultPart(call_id="c", name="look", output={"at": 1}),))
    assert to_items(stored(result)) == [
        {"type": "function_call_output", "call_id": "c", "output": '{"at": 1}'}
    ]


def test_a_nan_value_is_kept() -> None:
    [found] = to_items(stored(to_message({"role": "user", "content": "x", "n": float("nan")})))
    assert repr(found["n"]) == "nan"


def test_an_item_that_is_not_json_is_refused() -> None:
    with pytest.raises(InvalidValue, match="JSON object"):
        to_message({"role": "user", "content": object()})
