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
    row = tx.row(
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
    assert row is not None
    message_id: int = row[0]
    return message_id


def list_range(
    tx: ReadTx, *, session_id: str, branch_no: int, first_seq: int, last_seq: int = SEQ_MAX
) -> list[Message]:
    """Return the messages of one branch between two numbers, oldest first."""
    rows = tx.rows(
        "messages.list_range",
        session_id=session_id,
        branch_no=branch_no,
        first_seq=first_seq,
        last_seq=last_seq,
    )
    return [read_message(row) for row in rows]


def list_last(
    tx: ReadTx, *, session_id: str, branch_no: int, first_seq: int, last_seq: int = SEQ_MAX, limit: int
) -> list[Message]:
    """Return the newest messages of one branch between two numbers, newest first."""
    rows = tx.rows(
        "messages.list_last",
        session_id=session_id,
        branch_no=branch_no,
        first_seq=first_seq,
        last_seq=last_seq,
        limit=limit,
    )
    return [read_message(row) for row in rows]


def count_range(
    tx: ReadTx, *, session_id: str, branch_no: int, first_seq: int, last_seq: int = SEQ_MAX
) -> int:
    """Count the messages of one branch between two numbers."""
    row = tx.row(
        "messages.count_range",
        session_id=session_id,
        branch_no=branch_no,
        first_seq=first_seq,
        last_seq=last_seq,
    )
    assert row is not None
    count: int = row[0]
    return count


read_message = Message._make
"""Make a message of a row whose columns are in the order of its fields."""
