"""A brief as text and as JSON, for programs that answer turns."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

from keryx.agents.agent import Brief, HistoryItem, StepDone
from keryx.core.context.rules.cover import Cover
from keryx.core.context.rules.prompt import author_prefixed, context_block
from keryx.core.conversations.rules.message import (
    MediaPart,
    Message,
    NewMessage,
    ToolCallPart,
    ToolResultPart,
    text_of,
)
from keryx.core.values.graphemes import cut

CommandFormat = Literal["text", "jsonl"]
"""The formats in which a program reads a brief and writes its answer."""
VERSION: Final = 1
OUTPUT_SHOWN: Final = 500
"""The characters of a call's result in a conversation as text."""
HISTORY_MAX: Final = 60_000
"""The characters of a conversation as text, counted from its end."""


def asked_text(brief: Brief) -> str:
    """Return the messages of people since the last answer."""
    asked: list[str] = []
    for message in reversed(brief.messages):
        if isinstance(message, Cover) or (message.role == "assistant" and asked):
            break
        if message.role == "user":
            asked.append(spoken(message, is_group=brief.is_group))
    return "\n\n".join(reversed(asked))


def spoken(message: Message | NewMessage, *, is_group: bool) -> str:
    """Return the text of a message with the names of its attachments; in a group also with its author."""
    shown = [f"[{part.name or part.media_type}]" for part in message.parts if isinstance(part, MediaPart)]
    text = "\n".join(filter(None, [text_of(message.parts), *shown]))
    return author_prefixed(message.author, text) if is_group and message.author else text


def history_text(messages: Sequence[HistoryItem], *, is_group: bool) -> str:
    """Return a conversation as text, and only its end if it is long."""
    text = "\n\n".join(piece for each in messages for piece in _pieces(each, is_group=is_group))
    return text if len(text) <= HISTORY_MAX else f"[…]{text[-HISTORY_MAX:]}"


def _pieces(item: HistoryItem, *, is_group: bool) -> Iterator[str]:
    if isinstance(item, Cover):
        yield f"[summary of earlier messages] {item.summary}"
        return
    if text := spoken(item, is_group=is_group and item.role == "user"):
        yield f"{item.role}: {text}"
    for part in item.parts:
        if isinstance(part, ToolCallPart):
            yield f"[called {part.name}: {cut(str(part.arguments), OUTPUT_SHOWN)}]"
        elif isinstance(part, ToolResultPart):
            yield f"[result of {part.name}: {cut(str(part.output), OUTPUT_SHOWN)}]"


def brief_json(brief: Brief) -> dict[str, Any]:
    """Return a brief as the first line for a program of the format ``jsonl`` (see the guide to agents)."""
    return {
        "type": "brief",
        "version": VERSION,
        "turn_id": brief.turn_id,
        "session_id": brief.session_id,
        "purpose": brief.purpose,
        "role": brief.role,
        "context": context_block(brief.context),
        "text": asked_text(brief),
        "messages": [_message_json(each) for each in brief.messages],
        "tools": [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "effect": tool.effect,
            }
            for tool in brief.tools
        ],
    }


def results_json(done: StepDone, calls: Sequence[ToolCallPart]) -> dict[str, Any]:
    """Return the results of calls as the next line for a program, in the order of the calls."""
    by_id = {result.call_id: result for result in done.results}
    return {
        "type": "results",
        "results": [_result_json(by_id[call.call_id]) for call in calls if call.call_id in by_id],
        "joined": [text_of(message.parts) for message in done.joined],
    }


def _message_json(item: HistoryItem) -> dict[str, Any]:
    if isinstance(item, Cover):
        return {"role": "summary", "text": item.summary}
    message: dict[str, Any] = {"role": item.role, "text": item.text, "author": item.author}
    calls = [{"id": call.call_id, "name": call.name, "arguments": call.arguments} for call in item.tool_calls]
    results = [_result_json(part) for part in item.parts if isinstance(part, ToolResultPart)]
    media = [
        {"type": part.media_type, "name": part.name, "url": part.url}
        for part in item.parts
        if isinstance(part, MediaPart)
    ]
    lists = {"calls": calls, "results": results, "media": media}
    return message | {name: value for name, value in lists.items() if value}


def _result_json(part: ToolResultPart) -> dict[str, Any]:
    return {"id": part.call_id, "name": part.name, "output": part.output, "is_error": part.is_error}
