"""The messages that a search matches and shows."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.conversations.rules.branch import Segment
from keryx.store.codec import to_json
from keryx.store.database import ReadTx, Row


class MessageRow(NamedTuple):
    """The columns of a message that a search needs."""

    id: int
    session_id: str
    branch_no: int
    seq: int
    role: str
    parts: str
    author: str | None
    author_id: int | None
    created_at: Micros
    turn_id: int | None


def list_messages(tx: ReadTx, message_ids: Collection[int]) -> dict[int, MessageRow]:
    """Return some messages by id; purged messages are missing."""
    if not message_ids:
        return {}
    found = tx.all(MessageRow, "searched_messages.list", ids=to_json(list(message_ids)))
    return {message.id: message for message in found}


def list_message_ids(tx: ReadTx, *, after_id: int, limit: int) -> list[int]:
    """Return the ids of the messages after one, rising."""
    return tx.values("searched_messages.list_ids", after_id=after_id, limit=limit)


def list_near(tx: ReadTx, places: Sequence[tuple[str, int, int]], *, reach: int) -> list[Row]:
    """Return the messages up to ``reach`` numbers before and after each place.

    A place is (session, branch, number); a message is (session, number, role, parts).
    """
    if not places or not reach:
        return []
    return tx.rows("searched_messages.list_near", places=to_json(places), reach=reach)


def list_last(tx: ReadTx, segment: Segment, *, last_seq: int, limit: int) -> list[MessageRow]:
    """Return the newest messages of a part of a branch's path up to ``last_seq``, newest first."""
    return tx.all(
        MessageRow,
        "searched_messages.list_last",
        session_id=segment.session_id,
        branch_no=segment.branch_no,
        first_seq=segment.first_seq,
        last_seq=last_seq,
        limit=limit,
    )


def list_first(
    tx: ReadTx, segment: Segment, *, first_seq: int, last_seq: int, limit: int
) -> list[MessageRow]:
    """Return the oldest messages of a part of a branch's path from ``first_seq`` on, oldest first."""
    return tx.all(
        MessageRow,
        "searched_messages.list_first",
        session_id=segment.session_id,
        branch_no=segment.branch_no,
        first_seq=first_seq,
        last_seq=last_seq,
        limit=limit,
    )
