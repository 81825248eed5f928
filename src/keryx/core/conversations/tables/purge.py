"""Deleting a session for good, and finding those whose time has come."""

from dataclasses import asdict
from typing import Final, NamedTuple

from keryx.clock import Micros
from keryx.core.conversations.rules.branch import Segment
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.tables import feed
from keryx.store.database import ReadTx, Tx

_DROPS: Final = (
    # In the order in which rows refer to each other.
    "purge.drop_messages",
    "purge.drop_branches",
    "purge.drop_links",
    "purge.drop_tags",
    "purge.drop_drafts",
    "purge.drop_marks",
    "purge.drop_facts",
    "purge.drop_session",
)


class Child(NamedTuple):
    """A branch of another session that goes on from message ``parent_seq`` of the one to be purged."""

    session_id: SessionId
    no: int
    parent_seq: int


def list_children(tx: ReadTx, session_id: str) -> list[Child]:
    """Return the branches of other sessions that go on from a message of this one."""
    return tx.all(Child, "purge.list_children", session_id=session_id)


def copy_segment(tx: Tx, segment: Segment, *, to_session_id: str) -> list[int]:
    """Copy messages of one session into the first branch of another, numbers kept; return the new row ids."""
    return sorted(tx.values("purge.copy_range", **asdict(segment), to_session_id=to_session_id))


def set_parent(tx: Tx, *, session_id: str, no: int, parent: tuple[str, int] | None, parent_seq: int) -> None:
    """Let a branch go on from another message, or, without a parent, begin with nothing."""
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
    """Return the sessions that have been in the bin since ``before`` or longer, oldest first, and lock them."""
    return tx.values("purge.list_in_bin", before=before, limit=limit)


def list_prunable(
    tx: Tx, *, owner_id: int, before: Micros, platform: str | None, limit: int
) -> list[SessionId]:
    """Return a person's closed sessions without activity since ``before``, not pinned, not in the bin; lock them."""
    return tx.values("purge.list_prunable", owner_id=owner_id, before=before, platform=platform, limit=limit)


def drop_session(tx: Tx, session_id: str) -> None:
    """Delete the conversation of a session to which no key points, leaving one fact that it was purged.

    The fact has number 0, so that an import may bring the session back and count its stream from 1.
    """
    tx.run("purge.drop_old_fact", session_id=session_id)
    # Added before the others go: SQLite gives the id of the newest fact again once that is deleted, and readers
    # have passed it.
    feed.add_numbered(tx, session_id, 0, "session.purged", subject=None)
    for name in _DROPS:
        tx.run(name, session_id=session_id)
