"""Convert messages to and from OpenAI's chat format, which most models and programs use.

Content without a matching part is kept as an ``UnknownPart`` and goes out unchanged. The output can be sent to a
model as it is: every call is followed by exactly one result.
"""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from json import loads
from typing import Final

from keryx.core.context.rules.call_pairs import NO_RESULT, CallPair, orphan_result_text, pair_calls
from keryx.core.context.rules.cover import Cover
from keryx.core.conversations.rules.message import (
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
from keryx.core.conversations.rules.part import IMAGES
from keryx.core.values.json_value import JsonValue, as_text, check_json
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
TEXT_LENGTH_MAX: Final = 100_000
"""How many characters of a text file are shown."""

_DATA_URL_TYPE: Final = re.compile(r"data:([\w.+-]+/[\w.+-]+)[;,]")


def from_openai(chat: ChatMessage) -> NewMessage:
    """Return the message in ``chat``; raise InvalidValue if its role is missing or unknown."""
    role = _ROLES.get(str(chat.get("role")))
    if role is None:
        raise InvalidValue(f"role {chat.get('role')!r} of a chat message is not one of {', '.join(_ROLES)}")
    name = chat.get("name")
    if role == "tool":
        return NewMessage(role=role, parts=(_result(chat),))
    parts = (*_thinking(chat), *_content(chat.get("content")), *_refusal(chat), *_calls(chat))
    return NewMessage(role=role, parts=parts, author=name if isinstance(name, str) else None)


def to_openai(
    spoken: Sequence[Message | NewMessage | Cover], *, media: Mapping[str, bytes] | None = None
) -> list[ChatMessage]:
    """Return a conversation for a model; ``media`` contains the data of blobs, other blobs are only named.

    Each result follows its call, wherever the result is stored. A call without a result gets one that says so.
    """
    chat: list[ChatMessage] = []
    paired = pair_calls(spoken)
    for number, each in enumerate(spoken):
        if isinstance(each, Cover):
            # With the role of the user: a summary quotes strangers, who must not speak with the system's authority.
            chat.append({"role": "user", "content": f"Summary of the conversation so far:\n{each.summary}"})
        elif each.role != "tool":
            pairs = paired.pairs[number]
            chat += [_chat_message(each, pairs, media or {}), *map(_chat_result, pairs)]
        for result in paired.orphan_results[number]:
            chat.append({"role": "user", "content": orphan_result_text(result, as_text(result.output))})
    return chat


def _chat_message(
    message: Message | NewMessage, pairs: Sequence[CallPair], media: Mapping[str, bytes]
) -> ChatMessage:
    # Only media of users are shown; other media are only named.
    content = _chat_content(message.parts, media if message.role == "user" else {})
    chat: ChatMessage = {"role": message.role, "content": content}
    if message.author is not None and message.role == "user":
        chat["name"] = message.author
    thought = "\n".join(part.text for part in message.parts if isinstance(part, ThinkingPart) and part.text)
    if thought and message.role == "assistant":
        chat["reasoning_content"] = thought
    if pairs:
        calls: list[JsonValue] = [_chat_call(pair) for pair in pairs]
        chat["tool_calls"] = calls
    return chat


def _chat_result(pair: CallPair) -> ChatMessage:
    content = NO_RESULT if pair.result is None else _output_content(pair.result.output)
    return {"role": "tool", "tool_call_id": pair.call_id, "content": content}


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
    """Return the object in a model's argument text, or the text itself if it contains no object."""
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


def _chat_content(parts: tuple[Part, ...], media: Mapping[str, bytes]) -> JsonValue:
    said = [part for part in parts if isinstance(part, TextPart | MediaPart | UnknownPart)]
    if not said:
        return None if any(isinstance(part, ToolCallPart) for part in parts) else ""
    if all(isinstance(part, TextPart) for part in said):
        return text_of(parts)
    return [_chat_part(part, media) for part in said]


def _chat_part(part: TextPart | MediaPart | UnknownPart, media: Mapping[str, bytes]) -> JsonValue:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text}
        case MediaPart(url=str(url)) if part.media_type.startswith("image/"):
            image: dict[str, JsonValue] = {"url": url}
            if part.detail is not None:
                image["detail"] = part.detail
            return {"type": "image_url", "image_url": image}
        case MediaPart(blob=str(blob)) if blob in media and part.media_type in IMAGES:
            data = f"data:{part.media_type};base64,{b64encode(media[blob]).decode()}"
            return {"type": "image_url", "image_url": {"url": data}}
        case MediaPart(blob=str(blob)) if blob in media and part.media_type.startswith("text/"):
            text = media[blob].decode("utf-8", "replace")
            shown = text if len(text) <= TEXT_LENGTH_MAX else f"{text[:TEXT_LENGTH_MAX]}\n[…]"
            return {"type": "text", "text": f"[{part.name or part.media_type}]\n{shown}"}
        case MediaPart():
            return {"type": "text", "text": f"[{part.name or part.media_type}]"}
        case _:
            return part.raw


def _chat_call(pair: CallPair) -> JsonValue:
    function: JsonValue = {"name": pair.call.name, "arguments": as_text(pair.call.arguments)}
    return {"id": pair.call_id, "type": "function", "function": function}


def _output_content(output: JsonValue) -> JsonValue:
    """Return text and lists of content parts unchanged, any other value as its JSON text."""
    if (
        isinstance(output, list)
        and output
        and all(isinstance(item, dict) and "type" in item for item in output)
    ):
        return output
    return as_text(output)
