"""Sources, messages and calls to test with: whole values in which a test names only what it is about."""

from keryx.domain.inbox import Inbound
from keryx.domain.message import NewMessage, TextPart, ToolCallPart, ToolResultPart
from keryx.domain.source import ChatType, Source
from keryx.domain.turn import StepEffect

__all__ = ["call_message", "dm", "group", "inbound", "result_message"]


def dm(user: str = "ana", *, platform: str = "telegram", account: str | None = None) -> Source:
    """A direct message of a user, in a chat that bears the user's id."""
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
    """A message of a user in a group, or in a thread of it."""
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
    """A text as a platform delivers it; its reference is the text itself unless another is given."""
    return Inbound(source=source, ref=ref or text, parts=(TextPart(text=text),))


def call_message(*calls: tuple[str, StepEffect | None], text: str = "") -> NewMessage:
    """An assistant's message with calls, each an id and an effect."""
    said = (TextPart(text=text),) if text else ()
    made = tuple(
        ToolCallPart(call_id=call_id, name="tool", arguments={}, effect=effect) for call_id, effect in calls
    )
    return NewMessage(role="assistant", parts=said + made, input_tokens=7, output_tokens=3, cost_micros=11)


def result_message(call_id: str, output: str = "done") -> NewMessage:
    """What a call gave back."""
    return NewMessage(role="tool", parts=(ToolResultPart(call_id=call_id, name="tool", output=output),))
