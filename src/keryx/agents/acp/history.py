"""The part of a conversation that an ACP program knows, and the part it must be sent: read from stored messages only.

A message of the agent bears a mark that names the program's own session. If only new messages follow the last mark on
the same branch, that session knows everything before it.
"""

from collections.abc import Sequence
from json import dumps, loads
from typing import Final

from keryx.agents.agent import Brief, HistoryItem
from keryx.agents.briefing import history_text, spoken
from keryx.core.conversations.rules.message import Message, ThinkingPart, ToolResultPart
from keryx.core.turns.rules.program_calls import PERMISSION
from keryx.core.values.json_value import JsonValue
from keryx.values import dataclass

BY: Final = "acp"
HISTORY: Final = (
    "# The conversation so far\n\nAnother program kept it; the brackets name tools that were used.\n\n"
    "{history}\n\n# The new messages\n\n{text}"
)
ALLOWED: Final = "You asked whether you may do this: {title}. You may. Go on with it now."
REFUSED: Final = "You asked whether you may do this: {title}. You may not. Go on without it."
GO_ON: Final = "You were interrupted. Go on from what is done already, and do nothing twice."

PermissionKey = tuple[str, str, str]
"""The identity of a permission: title, kind and input."""


def key_of(title: str, kind: str, given: JsonValue) -> PermissionKey:
    """Return the identity of a permission."""
    return title, kind, dumps(given, sort_keys=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionAnswer:
    """A person's answer to a permission that the program requested."""

    call_id: str
    title: str
    key: PermissionKey
    is_given: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramPosition:
    """A session of the program, the last message that it knows, and the messages since."""

    session: str
    seq: int
    since: Sequence[HistoryItem]


def mark_of(program: str, session: str) -> ThinkingPart:
    """Return the part by which a later turn finds the program's session."""
    return ThinkingPart(text="", signature=dumps({"by": BY, "program": program, "session": session}))


def find_position(messages: Sequence[HistoryItem], *, program: str) -> ProgramPosition | None:
    """Return the position of the program; None if it has no session here, or another branch began since."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, Message) and (session := _marked(message, program=program)) is not None:
            since = messages[index + 1 :]
            branch = (message.session_id, message.branch_no)
            goes_on = all(
                isinstance(later, Message) and (later.session_id, later.branch_no) == branch
                for later in since
            )
            # On another branch the program knows messages that were taken back.
            return ProgramPosition(session=session, seq=message.seq, since=since) if goes_on else None
    return None


def _marked(message: Message, *, program: str) -> str | None:
    for part in message.parts if message.role == "assistant" else ():
        if not isinstance(part, ThinkingPart) or not part.signature:
            continue
        try:
            kept = loads(part.signature)
        except ValueError:
            continue
        if isinstance(kept, dict) and (kept.get("by"), kept.get("program")) == (BY, program):
            return str(kept.get("session"))
    return None


def find_permission(messages: Sequence[HistoryItem], since: Sequence[HistoryItem]) -> PermissionAnswer | None:
    """Return the answer to the last permission that the program requested, if it came since."""
    results = (
        part
        for message in reversed(since)
        if isinstance(message, Message)
        for part in message.parts
        if isinstance(part, ToolResultPart) and part.name == PERMISSION
    )
    if (result := next(results, None)) is None:
        return None
    for message in reversed(messages):
        for call in message.tool_calls if isinstance(message, Message) else ():
            if call.call_id == result.call_id and isinstance(call.arguments, dict):
                title, kind = str(call.arguments.get("title")), str(call.arguments.get("kind"))
                return PermissionAnswer(
                    call_id=call.call_id,
                    title=title,
                    key=key_of(title, kind, call.arguments.get("input")),
                    is_given=not result.is_error,
                )
    return None


def new_messages(since: Sequence[HistoryItem], *, known_seq: int) -> list[Message]:
    """Return the messages of people that the program does not know."""
    asked = [message for message in since if isinstance(message, Message) and message.role == "user"]
    return [message for message in asked if message.seq > known_seq]


def prompt_text(
    brief: Brief, news: Sequence[Message], permission: PermissionAnswer | None, past: Sequence[HistoryItem]
) -> str:
    """Return the text of a prompt: the new messages of people, and their answer to a permission.

    A new session of the program also gets the conversation before them, the ``past``.
    """
    said = [spoken(message, is_group=brief.is_group) for message in news]
    if permission is not None:
        said.insert(0, (ALLOWED if permission.is_given else REFUSED).format(title=permission.title))
    text = "\n\n".join(said) or GO_ON
    return HISTORY.format(history=history_text(past, is_group=brief.is_group), text=text) if past else text


def split_at_answer(messages: Sequence[HistoryItem]) -> tuple[Sequence[HistoryItem], Sequence[HistoryItem]]:
    """Return the messages up to the last one of the agent, and those since."""
    for index in range(len(messages), 0, -1):
        message = messages[index - 1]
        if not isinstance(message, Message) or message.role == "assistant":
            return messages[:index], messages[index:]
    return (), messages
