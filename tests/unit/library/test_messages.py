"""What a program says of a message becomes its parts."""

import pytest

from keryx.core.conversations.rules.message import (
    NewMessage,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from keryx.errors import InvalidValue
from keryx.library.messages import new_message

CALL = ToolCallPart(call_id="1", name="look", arguments={"at": "map"})


def test_a_text_is_one_part() -> None:
    assert new_message("user", "hello") == NewMessage(role="user", parts=(TextPart(text="hello"),))


def test_text_parts_and_calls_stand_in_this_order() -> None:
    thought = ThinkingPart(text="hm")
    message = new_message("assistant", "hello", [thought], [CALL], input_tokens=3, author="Ana")
    assert message.parts == (TextPart(text="hello"), thought, CALL)
    assert (message.input_tokens, message.author) == (3, "Ana")


@pytest.mark.parametrize(
    "call",
    [
        CALL,
        {"id": "1", "name": "look", "arguments": {"at": "map"}},
        {"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"at":"map"}'}},
    ],
)
def test_a_call_may_be_given_in_any_of_three_forms(call: ToolCallPart | dict[str, object]) -> None:
    assert new_message("assistant", tool_calls=[call]).parts == (CALL,)


def test_a_result_names_its_call() -> None:
    message = new_message("tool", "a map", tool_call_id="1", tool_name="look")
    assert message.parts == (ToolResultPart(call_id="1", name="look", output="a map"),)


def test_an_empty_message_is_refused() -> None:
    with pytest.raises(InvalidValue, match="is empty"):
        new_message("user")


def test_a_call_without_a_name_is_refused() -> None:
    with pytest.raises(InvalidValue, match="'name' is missing"):
        new_message("assistant", tool_calls=[{"id": "1"}])
