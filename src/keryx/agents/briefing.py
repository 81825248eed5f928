"""A brief in words and in JSON, for programs that answer: what was asked, what was said before, what may be called."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from keryx.agents.agent import Asked, Brief, Said, StepDone
from keryx.domain.cover import Cover
from keryx.domain.graphemes import cut
from keryx.domain.message import (
    MediaPart,
    Message,
    NewMessage,
    ToolCallPart,
    ToolResultPart,
    text_of,
)
from keryx.domain.prompt import context_block, spoken_by

VERSION: Final = 1
OUTPUT_SHOWN: Final = 500
"""How much of a call's result stands in a conversation that is told as text."""
HISTORY_MAX: Final = 60_000
"""How many characters of a conversation are told as text, from its end."""


def answered_by(name: str) -> Asked:
    """Return what a turn keeps of who answered it; what a program makes of its brief is its own."""
    return Asked(model=name, prompt="", tools="")


def asked_text(brief: Brief) -> str:
    """Return what people said since the last answer."""
    asked: list[str] = []
    for message in reversed(brief.messages):
        if isinstance(message, Cover) or (message.role == "assistant" and asked):
            break
        if message.role == "user":
            asked.append(spoken(message, is_group=is_group(brief)))
    return "\n\n".join(reversed(asked))


def is_group(brief: Brief) -> bool:
    """Say whether several people speak there."""
    return brief.context.source.chat_type != "dm"


def spoken(message: Message | NewMessage, *, is_group: bool) -> str:
    """Return what a message says: in a group by whom, and what it shows by name."""
    shown = [f"[{part.name or part.media_type}]" for part in message.parts if isinstance(part, MediaPart)]
    text = "\n".join(filter(None, [text_of(message.parts), *shown]))
    return spoken_by(message.author, text) if is_group and message.author else text


def history_text(messages: Sequence[Said], *, is_group: bool) -> str:
    """Return a conversation as text, the end of it if it is long."""
    told = "\n\n".join(piece for each in messages for piece in _told(each, is_group=is_group))
    return told if len(told) <= HISTORY_MAX else f"[…]{told[-HISTORY_MAX:]}"


def _told(said: Said, *, is_group: bool) -> Iterator[str]:
    if isinstance(said, Cover):
        yield f"[summary of what was said before] {said.summary}"
        return
    if text := spoken(said, is_group=is_group and said.role == "user"):
        yield f"{said.role}: {text}"
    for part in said.parts:
        if isinstance(part, ToolCallPart):
            yield f"[called {part.name}: {cut(str(part.arguments), OUTPUT_SHOWN)}]"
        elif isinstance(part, ToolResultPart):
            yield f"[result of {part.name}: {cut(str(part.output), OUTPUT_SHOWN)}]"


def brief_json(brief: Brief) -> dict[str, Any]:
    """Return a brief as the first line that a program of the format ``jsonl`` reads (see the guide to agents)."""
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
    """Return what came of calls as the line a program reads next, in the order of the calls."""
    by_id = {result.call_id: result for result in done.results}
    return {
        "type": "results",
        "results": [_result_json(by_id[call.call_id]) for call in calls if call.call_id in by_id],
        "joined": [text_of(message.parts) for message in done.joined],
    }


def _message_json(said: Said) -> dict[str, Any]:
    if isinstance(said, Cover):
        return {"role": "summary", "text": said.summary}
    told: dict[str, Any] = {"role": said.role, "text": said.text, "author": said.author}
    calls = [{"id": call.call_id, "name": call.name, "arguments": call.arguments} for call in said.tool_calls]
    results = [_result_json(part) for part in said.parts if isinstance(part, ToolResultPart)]
    media = [
        {"type": part.media_type, "name": part.name, "url": part.url}
        for part in said.parts
        if isinstance(part, MediaPart)
    ]
    lists = {"calls": calls, "results": results, "media": media}
    return told | {name: value for name, value in lists.items() if value}


def _result_json(part: ToolResultPart) -> dict[str, Any]:
    return {"id": part.call_id, "name": part.name, "output": part.output, "is_error": part.is_error}
