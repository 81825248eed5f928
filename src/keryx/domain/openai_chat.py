"""Messages in the chat format most models and programs speak (OpenAI's), both ways.

Content of a kind we have no part for is kept as an ``UnknownPart`` and goes out as it came. Thinking comes in
and never goes out.
"""

import re
from json import dumps, loads
from typing import Final

from keryx.domain.json_value import JsonValue, check_json
from keryx.domain.message import (
    MediaPart,
    Message,
    NewMessage,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    UnknownPart,
    text_of,
)
from keryx.errors import InvalidValue

ChatMessage = dict[str, JsonValue]

_ROLES: Final[dict[str, Role]] = {
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
    "system": "system",
    "developer": "system",
}
_DATA_URL_TYPE: Final = re.compile(r"data:([\w.+-]+/[\w.+-]+)[;,]")


def from_openai(chat: ChatMessage) -> NewMessage:
    """Return the message ``chat`` says; raises InvalidValue when its role is missing or unknown."""
    role = _ROLES.get(str(chat.get("role")))
    if role is None:
        raise InvalidValue(f"role {chat.get('role')!r} of a chat message is not one of {', '.join(_ROLES)}")
    name = chat.get("name")
    if role == "tool":
        return NewMessage(role=role, parts=(_result(chat),))
    parts = (*_thinking(chat), *_content(chat.get("content")), *_refusal(chat), *_calls(chat))
    return NewMessage(role=role, parts=parts, author=name if isinstance(name, str) else None)


def to_openai(message: Message | NewMessage) -> list[ChatMessage]:
    """Return ``message`` for a model: one chat message, or one for each result of a tool message."""
    results: list[ChatMessage] = [
        {"role": "tool", "tool_call_id": part.call_id, "content": _output_content(part.output)}
        for part in message.parts
        if isinstance(part, ToolResultPart)
    ]
    if message.role == "tool":
        return results
    chat: ChatMessage = {"role": message.role, "content": _chat_content(message.parts)}
    if message.author is not None and message.role == "user":
        chat["name"] = message.author
    calls: list[JsonValue] = [_chat_call(part) for part in message.parts if isinstance(part, ToolCallPart)]
    if calls:
        chat["tool_calls"] = calls
    return [chat, *results]


def _thinking(chat: ChatMessage) -> list[Part]:
    text = chat.get("reasoning_content") or chat.get("reasoning")
    return [ThinkingPart(text=text)] if isinstance(text, str) else []


def _refusal(chat: ChatMessage) -> list[Part]:
    text = chat.get("refusal")
    return [TextPart(text=text)] if isinstance(text, str) else []


def _content(content: JsonValue) -> list[Part]:
    if content is None:
        return []
    if isinstance(content, str):
        return [TextPart(text=content)]
    items = content if isinstance(content, list) else [content]
    return [_content_part(item) for item in items]


def _content_part(item: JsonValue) -> Part:
    match item:
        case str():
            return TextPart(text=item)
        case {"type": "text", "text": str(text), **rest} if not rest:
            return TextPart(text=text)
        case {"type": "image_url", "image_url": {"url": str(url), **rest}} if rest.keys() <= {"detail"}:
            found = _DATA_URL_TYPE.match(url)
            detail = rest.get("detail")
            return MediaPart(
                media_type=found[1] if found else "image/*",
                url=url,
                detail=detail if isinstance(detail, str) else None,
            )
        case dict():
            return UnknownPart(raw=item)
        case _:
            return UnknownPart(raw={"value": item})


def _calls(chat: ChatMessage) -> list[Part]:
    calls = chat.get("tool_calls")
    parts = [_call(call) for call in calls] if isinstance(calls, list) else []
    match chat.get("function_call"):
        case {"name": str(name), "arguments": arguments}:
            # The format's first version had one call without an id.
            parts.append(ToolCallPart(call_id=name, name=name, arguments=_arguments(arguments)))
        case _:
            pass
    return parts


def _call(call: JsonValue) -> Part:
    match call:
        case {"id": str(call_id), "function": {"name": str(name), "arguments": arguments}}:
            return ToolCallPart(call_id=call_id, name=name, arguments=_arguments(arguments))
        case dict():
            return UnknownPart(raw=call)
        case _:
            return UnknownPart(raw={"value": call})


def _arguments(arguments: JsonValue) -> JsonValue:
    """Return the object a model's argument text stands for, or the text itself when it is none."""
    if not isinstance(arguments, str):
        return arguments
    try:
        value = loads(arguments)
        check_json(value, where="arguments")
    except (ValueError, RecursionError):
        return arguments
    return value if isinstance(value, dict) else arguments


def _result(chat: ChatMessage) -> ToolResultPart:
    name = chat.get("name")
    call_id = chat.get("tool_call_id")
    name = name if isinstance(name, str) else ""
    return ToolResultPart(
        call_id=call_id if isinstance(call_id, str) else name,
        name=name,
        output=chat.get("content"),
    )


def _chat_content(parts: tuple[Part, ...]) -> JsonValue:
    said = [part for part in parts if isinstance(part, TextPart | MediaPart | UnknownPart)]
    if not said:
        return None if any(isinstance(part, ToolCallPart) for part in parts) else ""
    if all(isinstance(part, TextPart) for part in said):
        return text_of(parts)
    return [_chat_part(part) for part in said]


def _chat_part(part: TextPart | MediaPart | UnknownPart) -> JsonValue:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text}
        case MediaPart(url=str(url)) if part.media_type.startswith("image/"):
            image: dict[str, JsonValue] = {"url": url}
            if part.detail is not None:
                image["detail"] = part.detail
            return {"type": "image_url", "image_url": image}
        case MediaPart():
            # A stored blob is put in by whoever can read it; to a model that cannot see it, it is named.
            return {"type": "text", "text": f"[{part.name or part.media_type}]"}
        case _:
            return part.raw


def _chat_call(part: ToolCallPart) -> JsonValue:
    arguments = part.arguments if isinstance(part.arguments, str) else _text(part.arguments)
    return {"id": part.call_id, "type": "function", "function": {"name": part.name, "arguments": arguments}}


def _output_content(output: JsonValue) -> JsonValue:
    """Text and lists of content parts go as they are, any other value as its JSON text."""
    if isinstance(output, str):
        return output
    if (
        isinstance(output, list)
        and output
        and all(isinstance(item, dict) and "type" in item for item in output)
    ):
        return output
    return _text(output)


def _text(value: JsonValue) -> str:
    return dumps(value, ensure_ascii=False, separators=(",", ":"))
