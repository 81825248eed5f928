"""From the words of a call to a message: roles, texts, tool calls and their results."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack, cast

from keryx.clock import Micros
from keryx.domain.message import NewMessage, Part, Role, TextPart, ToolCallPart, ToolResultPart
from keryx.domain.openai_chat import from_openai
from keryx.errors import InvalidValue

ToolCall = ToolCallPart | Mapping[str, Any]
"""A call: a part, ``{"id", "name", "arguments"}``, or the form of OpenAI's chat messages."""


_OF_RESULTS = ("tool_call_id", "tool_name")


class MessageFacts(TypedDict, total=False):
    """What may be said of a message beside its content."""

    author: str | None
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    thinking_tokens: int
    cost_micros: int
    finish_reason: str | None
    created_at: Micros | None


class MessageDetails(MessageFacts, total=False):
    """The same, and which call a tool's message is the result of."""

    tool_call_id: str
    tool_name: str


def new_message(
    role: Role,
    text: str | None = None,
    parts: Sequence[Part] = (),
    tool_calls: Sequence[ToolCall] = (),
    **details: Unpack[MessageDetails],
) -> NewMessage:
    """Return the message: its text, then its parts, then its calls; raises InvalidValue when it has nothing."""
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
        raise InvalidValue(
            "a message with no text, no parts and no tool calls says nothing; give it one of them"
        )
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
        raise InvalidValue(f"a tool call has an id, a name and arguments; {missing} is missing") from None
