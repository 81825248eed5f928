"""Messages: appended, never changed."""

from dataclasses import asdict

from keryx.core.conversations.rules.branch import SEQ_MAX, Segment
from keryx.core.conversations.rules.message import (
    Message,
    NewMessage,
    encode_parts,
    tool_call_count,
    usage_of,
)
from keryx.core.conversations.tables.sessions import MessagePlace
from keryx.store.codec import clean_text
from keryx.store.database import ReadTx, Tx


def add_message(
    tx: Tx, *, session_id: str, place: MessagePlace, message: NewMessage, turn_id: int | None
) -> int:
    """Store a message at its place and return its row id."""
    message_id: int = tx.value(
        "messages.add",
        session_id=session_id,
        branch_no=place.branch_no,
        seq=place.seq,
        role=message.role,
        parts=encode_parts(message.parts),
        author=clean_text(message.author),
        author_id=message.author_id,
        turn_id=turn_id,
        tool_call_count=tool_call_count(message.parts),
        **usage_of(message),
        finish_reason=clean_text(message.finish_reason),
        created_at=tx.now if message.created_at is None else message.created_at,
    )
    return message_id


def list_range(tx: ReadTx, segment: Segment, *, limit: int = SEQ_MAX) -> list[Message]:
    """Return the first messages of a segment, oldest first."""
    return tx.all(Message, "messages.list_range", **asdict(segment), limit=limit)


def list_last(tx: ReadTx, segment: Segment, *, limit: int) -> list[Message]:
    """Return the last messages of a segment, newest first."""
    return tx.all(Message, "messages.list_last", **asdict(segment), limit=limit)


def count_range(tx: ReadTx, segment: Segment) -> int:
    """Count the messages of a segment."""
    count: int = tx.value("messages.count_range", **asdict(segment))
    return count
