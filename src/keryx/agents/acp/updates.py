"""Updates of an ACP session as events of ours. Pure."""

from typing import Any

from acp import schema

from keryx.agents.acp.contract import ProgramEvent, TextChunk, ToolUpdate
from keryx.core.values.json_value import JsonValue, check_json
from keryx.errors import InvalidValue


def read_event(update: Any) -> ProgramEvent | None:
    """Return the event of a session update; None for an update that is not shown."""
    match update:
        case schema.AgentMessageChunk(content=schema.TextContentBlock(text=text)):
            return TextChunk(text=text)
        case schema.AgentThoughtChunk(content=schema.TextContentBlock(text=text)):
            return TextChunk(text=text, is_thought=True)
        case schema.ToolCallStart() | schema.ToolCallProgress():
            return ToolUpdate(
                call_id=update.tool_call_id,
                title=update.title,
                kind=update.kind,
                given=read_json(update.raw_input),
                output=_output(update),
                has_failed=update.status == "failed",
                is_done=update.status in ("completed", "failed"),
            )
        case _:
            return None


def _output(update: Any) -> JsonValue:
    """Return the result of a tool: its texts, else its raw output."""
    texts = [
        item.content.text
        for item in update.content or ()
        if isinstance(item, schema.ContentToolCallContent)
        and isinstance(item.content, schema.TextContentBlock)
    ]
    texts += [
        f"changed {item.path}"
        for item in update.content or ()
        if isinstance(item, schema.FileEditToolCallContent)
    ]
    return "\n".join(texts) if texts else read_json(update.raw_output)


def read_json(value: object) -> JsonValue:
    """Return a value of the program as JSON, or its text if it is not JSON."""
    try:
        check_json(value, where="the program's value")
    except InvalidValue:
        return str(value)
    return value  # type: ignore[return-value]  # Just checked.
