"""Branches of sessions, and the links between sessions."""

from keryx.core.conversations.rules.branch import Branch, Segment, path
from keryx.core.conversations.rules.lineage import LinkKind, SessionLink
from keryx.core.turns.rules.delegation import Delegation
from keryx.errors import InvalidValue
from keryx.store.codec import clean_text
from keryx.store.database import ReadTx, Tx


def list_branches(tx: ReadTx, session_id: str) -> list[Branch]:
    """Return all branches of a session and every ancestor of theirs in other sessions."""
    found: list[Branch] = []
    wanted, seen = [session_id], {session_id}
    while wanted:
        current = wanted.pop()
        rows = tx.rows("branches.list_of_session", session_id=current)
        if not rows or rows[0][1] != 0:
            # A session that is no fork begins with nothing, and keeps no row to say so.
            found.append(Branch(session_id=current, no=0))
        for session, no, parent_session_id, parent_no, parent_seq, reason, created_at in rows:
            found.append(
                Branch(
                    session_id=session,
                    no=no,
                    parent_session_id=parent_session_id,
                    parent_no=parent_no,
                    parent_seq=parent_seq,
                    reason=reason,
                    created_at=created_at,
                )
            )
            if parent_session_id is not None and parent_session_id not in seen:
                seen.add(parent_session_id)
                wanted.append(parent_session_id)
    return found


def list_path(tx: ReadTx, *, session_id: str, branch_no: int) -> list[Segment]:
    """Return the ranges of messages that make up a branch, oldest first."""
    return path(list_branches(tx, session_id), session_id=session_id, no=branch_no)


def add_branch(tx: Tx, branch: Branch) -> None:
    """Store a branch; its time is now."""
    tx.run(
        "branches.add",
        session_id=branch.session_id,
        no=branch.no,
        parent_session_id=branch.parent_session_id,
        parent_no=branch.parent_no,
        parent_seq=branch.parent_seq,
        reason=branch.reason,
    )


def activate(tx: Tx, *, session_id: str, no: int, message_count: int) -> None:
    """Show a branch from now on; ``message_count`` must be what its path holds."""
    tx.run("branches.activate", session_id=session_id, no=no, message_count=message_count)


def add_link(
    tx: Tx,
    *,
    kind: LinkKind,
    to_session_id: str,
    from_session_id: str | None,
    at_seq: int | None = None,
    origin: str | None = None,
) -> None:
    """Store how a session came from another, or from elsewhere."""
    tx.run(
        "branches.add_link",
        kind=kind,
        from_session_id=from_session_id,
        to_session_id=to_session_id,
        at_seq=at_seq,
        origin=clean_text(origin),
    )


def list_links(tx: ReadTx, session_id: str) -> list[SessionLink]:
    """Return the links into and out of a session, oldest first."""
    return tx.all(SessionLink, "branches.list_links", session_id=session_id)


def find_delegation(tx: ReadTx, session_id: str) -> Delegation | None:
    """Return the task that a session was opened for here, or None; links from elsewhere tell theirs in other words."""
    task = tx.value("branches.find_delegation", session_id=session_id)
    try:
        return None if task is None else Delegation.parse(task)
    except InvalidValue:
        return None
