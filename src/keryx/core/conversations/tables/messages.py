"""Messages: appended, never changed."""

from keryx.core.conversations.rules.message import Message, NewMessage, encode_parts, tool_call_count
from keryx.core.conversations.tables.sessions import MessagePlace
from keryx.store.codec import clean_text
from keryx.store.database import ReadTx, Tx

SEQ_MAX = 2**62


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
        input_tokens=message.input_tokens,
        cached_tokens=message.cached_tokens,
        output_tokens=message.output_tokens,
        thinking_tokens=message.thinking_tokens,
        cost_micros=message.cost_micros,
        finish_reason=clean_text(message.finish_reason),
        created_at=tx.now if message.created_at is None else message.created_at,
    )
    return message_id


def list_range(
    tx: ReadTx, *, session_id: str, branch_no: int, first_seq: int, last_seq: int = SEQ_MAX
) -> list[Message]:
    """Return the messages of one branch between two numbers, oldest first."""
    return tx.all(
        Message,
        "messages.list_range",
        session_id=session_id,
        branch_no=branch_no,
        first_seq=first_seq,
        last_seq=last_seq,
    )


def list_last(
    tx: ReadTx, *, session_id: str, branch_no: int, first_seq: int, last_seq: int = SEQ_MAX, limit: int
) -> list[Message]:
    """Return the newest messages of one branch between two numbers, newest first."""
    return tx.all(
        Message,
        "messages.list_last",
        session_id=session_id,
        branch_no=branch_no,
        first_seq=first_seq,
        last_seq=last_seq,
        limit=limit,
    )


def count_range(
    tx: ReadTx, *, session_id: str, branch_no: int, first_seq: int, last_seq: int = SEQ_MAX
) -> int:
    """Count the messages of one branch between two numbers."""
    count: int = tx.value(
        "messages.count_range",
        session_id=session_id,
        branch_no=branch_no,
        first_seq=first_seq,
        last_seq=last_seq,
    )
    return count
