"""Builders for sources, messages and calls: complete values in which a test sets only the fields it needs."""

from keryx.core.conversations.rules.message import NewMessage, TextPart, ToolCallPart, ToolResultPart
from keryx.core.conversations.rules.source import ChatType, Source
from keryx.core.turns.rules.inbox import Inbound
from keryx.core.values.turn_states import StepEffect

__all__ = ["call_message", "dm", "group", "inbound", "result_message"]


def dm(user: str = "ana", *, platform: str = "telegram", account: str | None = None) -> Source:
    """Return the source of a direct message, in a chat with the user's id."""
    return Source(
        platform=platform,
        account=account,
        chat_id=user,
        chat_type="dm",
        user_id=user,
        user_name=user.title(),
    )


def group(
    user: str = "ana", *, chat: str = "family", thread: str | None = None, platform: str = "telegram"
) -> Source:
    """Return the source of a message in a group, or in a thread of the group."""
    chat_type: ChatType = "group" if thread is None else "thread"
    return Source(
        platform=platform,
        chat_id=chat,
        chat_type=chat_type,
        chat_name=chat.title(),
        thread_id=thread,
        user_id=user,
        user_name=user.title(),
    )


def inbound(text: str, *, source: Source, ref: str | None = None) -> Inbound:
    """Return a text message as a platform delivers it; its default ``ref`` is the text."""
    return Inbound(source=source, ref=ref or text, parts=(TextPart(text=text),))


def call_message(*calls: tuple[str, StepEffect | None], text: str = "") -> NewMessage:
    """Return an assistant's message with calls, each an id and an effect."""
    said = (TextPart(text=text),) if text else ()
    made = tuple(
        ToolCallPart(call_id=call_id, name="tool", arguments={}, effect=effect) for call_id, effect in calls
    )
    return NewMessage(role="assistant", parts=said + made, input_tokens=7, output_tokens=3, cost_micros=11)


def result_message(call_id: str, output: str = "done") -> NewMessage:
    """Return a tool message with the result of a call."""
    return NewMessage(role="tool", parts=(ToolResultPart(call_id=call_id, name="tool", output=output),))
