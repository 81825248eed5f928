"""Delete sessions, and list those that are due to be deleted."""

from dataclasses import asdict
from typing import Final, NamedTuple

from keryx.clock import Micros
from keryx.core.conversations.rules.branch import Segment
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.tables import feed
from keryx.store.database import ReadTx, Tx

_DROPS: Final = (
    # In the order that the foreign keys require.
    "purge.drop_messages",
    "purge.drop_branches",
    "purge.drop_links",
    "purge.drop_tags",
    "purge.drop_drafts",
    "purge.drop_marks",
    "purge.drop_events",
    "purge.drop_session",
)


class Child(NamedTuple):
    """A branch of another session that continues from message ``parent_seq`` of the session to be deleted."""

    session_id: SessionId
    no: int
    parent_seq: int


def list_children(tx: ReadTx, session_id: str) -> list[Child]:
    """Return the branches of other sessions that continue from a message of this session."""
    return tx.all(Child, "purge.list_children", session_id=session_id)


def copy_segment(tx: Tx, segment: Segment, *, to_session_id: str) -> list[int]:
    """Copy messages with their numbers into the first branch of another session; return the new row ids."""
    return sorted(tx.values("purge.copy_range", **asdict(segment), to_session_id=to_session_id))


def set_parent(tx: Tx, *, session_id: str, no: int, parent: tuple[str, int] | None, parent_seq: int) -> None:
    """Set the parent of a branch; without a parent the branch begins empty."""
    parent_session_id, parent_no = parent or (None, None)
    tx.run(
        "purge.set_parent",
        session_id=session_id,
        no=no,
        parent_session_id=parent_session_id,
        parent_no=parent_no,
        parent_seq=parent_seq,
    )


def list_in_bin(tx: Tx, *, before: Micros, limit: int) -> list[SessionId]:
    """Lock and return the sessions that were put into the bin at ``before`` or earlier, oldest first."""
    return tx.values("purge.list_in_bin", before=before, limit=limit)


def list_prunable(
    tx: Tx, *, owner_id: int, before: Micros, platform: str | None, limit: int
) -> list[SessionId]:
    """Lock and return a person's closed sessions without activity since ``before``, but no pinned or deleted ones."""
    return tx.values("purge.list_prunable", owner_id=owner_id, before=before, platform=platform, limit=limit)


def drop_session(tx: Tx, session_id: str) -> None:
    """Delete a session to which no key points, and add the event of the purge.

    This event has number 0, so that the stream of a session that is imported again begins with 1.
    """
    tx.run("purge.drop_old_event", session_id=session_id)
    # Add this event before the deletion: SQLite reuses the id of a deleted newest row, which readers have passed.
    feed.add_numbered(tx, session_id, 0, "session.purged", subject=None)
    for name in _DROPS:
        tx.run(name, session_id=session_id)
