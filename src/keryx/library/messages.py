"""Make a message from the arguments of ``append``: role, text, parts, tool calls and results."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack, cast

from keryx.clock import Micros
from keryx.core.context.rules.openai_chat import from_openai
from keryx.core.conversations.rules.message import (
    NewMessage,
    Part,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from keryx.errors import InvalidValue

ToolCall = ToolCallPart | Mapping[str, Any]
"""A tool call: a part, ``{"id", "name", "arguments"}``, or the form in OpenAI's chat messages."""

_OF_RESULTS = ("tool_call_id", "tool_name")


class MessageFacts(TypedDict, total=False):
    """The facts of a message beside its content."""

    author: str | None
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    thinking_tokens: int
    cost_micros: int
    finish_reason: str | None
    created_at: Micros | None


class MessageDetails(MessageFacts, total=False):
    """The facts of a message, and the tool call that the message is the result of."""

    tool_call_id: str
    tool_name: str


def new_message(
    role: Role,
    text: str | None = None,
    parts: Sequence[Part] = (),
    tool_calls: Sequence[ToolCall] = (),
    **details: Unpack[MessageDetails],
) -> NewMessage:
    """Return a message with the text, then the parts, then the calls; raise InvalidValue if there is none of them."""
    if text is not None and not parts and not tool_calls and not details:
        return NewMessage(role=role, parts=(TextPart(text=text),))
    content: list[Part] = []
    if "tool_call_id" in details:
        name = details.get("tool_name", "")
        content.append(ToolResultPart(call_id=details["tool_call_id"], name=name, output=text))
    elif text is not None:
        content.append(TextPart(text=text))
    content += parts
    content += [_call(call) for call in tool_calls]
    if not content:
        raise InvalidValue("the message is empty: give it a text, parts or tool calls")
    facts = {name: value for name, value in details.items() if name not in _OF_RESULTS}
    return NewMessage(role=role, parts=tuple(content), **cast(MessageFacts, facts))


def _call(call: ToolCall) -> Part:
    if isinstance(call, ToolCallPart):
        return call
    if "function" in call:
        [part] = from_openai({"role": "assistant", "tool_calls": [dict(call)]}).parts
        return part
    try:
        return ToolCallPart(call_id=call["id"], name=call["name"], arguments=call["arguments"])
    except KeyError as missing:
        raise InvalidValue(f"a tool call needs an id, a name and arguments; {missing} is missing") from None
