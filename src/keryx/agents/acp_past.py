"""What an ACP program has heard of a conversation, and what it must be told: read from the stored messages alone.

A message of the agent bears a mark that names the program's own conversation. As long as nothing but news follows the
last mark on the same branch, that conversation has heard everything before it.
"""

from collections.abc import Sequence
from json import dumps, loads
from typing import Final

from keryx.agents.acp_words import PERMISSION
from keryx.agents.agent import Brief, Said
from keryx.agents.briefing import history_text, is_group, spoken
from keryx.domain.json_value import JsonValue
from keryx.domain.message import Message, ThinkingPart, ToolResultPart
from keryx.values import dataclass

BY: Final = "acp"
HISTORY: Final = (
    "# The conversation so far\n\nIt was kept elsewhere; what stands in brackets are tools that were used.\n\n"
    "{history}\n\n# What is said now\n\n{text}"
)
ALLOWED: Final = "You asked whether you may do this: {title}. You may. Go on with it now."
REFUSED: Final = "You asked whether you may do this: {title}. You may not. Go on without it."
GO_ON: Final = "You were interrupted. Go on from what is done already, and do nothing twice."

Key = tuple[str, str, str]
"""What tells one wish of a program from another."""


def key_of(title: str, kind: str, given: JsonValue) -> Key:
    """Return what makes a wish the same as another."""
    return title, kind, dumps(given, sort_keys=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """What a person said to what the program wanted."""

    call_id: str
    title: str
    key: Key
    is_given: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A conversation of the program, the last message it is known to have heard, and what came since."""

    session: str
    seq: int
    since: Sequence[Said]


def mark_of(program: str, session: str) -> ThinkingPart:
    """Return the part by which a later turn finds the program's conversation."""
    return ThinkingPart(text="", signature=dumps({"by": BY, "program": program, "session": session}))


def place_of(messages: Sequence[Said], *, program: str) -> Place | None:
    """Return where the program is; None where it never was, or where another branch began since."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, Message) and (session := _marked(message, program=program)) is not None:
            since = messages[index + 1 :]
            branch = (message.session_id, message.branch_no)
            goes_on = all(
                isinstance(later, Message) and (later.session_id, later.branch_no) == branch
                for later in since
            )
            # On another branch the program has heard what was taken back.
            return Place(session=session, seq=message.seq, since=since) if goes_on else None
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


def permission_in(messages: Sequence[Said], since: Sequence[Said]) -> Permission | None:
    """Return what was said to what the program wanted last, if that came since."""
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
                return Permission(
                    call_id=call.call_id,
                    title=title,
                    key=key_of(title, kind, call.arguments.get("input")),
                    is_given=not result.is_error,
                )
    return None


def news_in(since: Sequence[Said], *, heard_seq: int) -> list[Message]:
    """Return what people said since, without what the program has heard."""
    asked = [message for message in since if isinstance(message, Message) and message.role == "user"]
    return [message for message in asked if message.seq > heard_seq]


def text_of_news(news: Sequence[Message], permission: Permission | None, *, is_group: bool) -> str:
    """Return what the program is told: what people said, and decided for it."""
    said = [spoken(message, is_group=is_group) for message in news]
    if permission is not None:
        said.insert(0, (ALLOWED if permission.is_given else REFUSED).format(title=permission.title))
    return "\n\n".join(said) or GO_ON


def split_at_answer(messages: Sequence[Said]) -> tuple[Sequence[Said], Sequence[Said]]:
    """Return what was said up to the last message of the agent, and what came since."""
    for index in range(len(messages), 0, -1):
        message = messages[index - 1]
        if not isinstance(message, Message) or message.role == "assistant":
            return messages[:index], messages[index:]
    return (), messages


def whole_text(brief: Brief, past: Sequence[Said], text: str) -> str:
    """Return ``text`` for a program that hears of this conversation for the first time."""
    if not past:
        return text
    return HISTORY.format(history=history_text(past, is_group=is_group(brief)), text=text)
