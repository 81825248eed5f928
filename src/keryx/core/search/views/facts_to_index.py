"""The facts of the feed that the index does not cover yet."""

from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.conversations.rules.event import Position
from keryx.store.database import ReadTx


class NewFact(NamedTuple):
    """A fact of the feed. The fields from ``message_id`` on are empty unless a message is its subject and exists."""

    xid: int
    id: int
    kind: str
    session_id: str | None
    message_id: int | None
    role: str
    parts: str
    author: str | None
    author_id: int | None
    created_at: Micros
    audience_id: int
    platform: str


def list_new(tx: ReadTx, *, after: Position, limit: int) -> list[NewFact]:
    """Return the facts after a position in order, but none of a transaction that still runs, or later."""
    return tx.all(NewFact, "facts_to_index.list", xid=after.xid, id=after.id, limit=limit)


def list_newest(tx: ReadTx, *, after: Position, limit: int) -> list[tuple[str, str | None, int | None]]:
    """Return (kind, session, subject) of the newest facts after a position, newest first."""
    return [
        tuple(row) for row in tx.rows("facts_to_index.list_newest", xid=after.xid, id=after.id, limit=limit)
    ]


def count_new(tx: ReadTx, *, after: Position, limit: int) -> int:
    """Count the facts after a position, up to ``limit``."""
    ((count,),) = tx.rows("facts_to_index.count", xid=after.xid, id=after.id, limit=limit)
    return int(count)
