"""Branches of sessions, and the links between sessions."""

from dataclasses import asdict

from keryx.clock import Micros
from keryx.core.conversations.rules.branch import Branch, Segment, path
from keryx.core.conversations.rules.session import LinkKind, SessionLink
from keryx.core.turns.rules.delegation import Delegation
from keryx.errors import InvalidValue
from keryx.store.codec import clean_text
from keryx.store.database import ReadTx, Tx


def list_branches(tx: ReadTx, session_id: str) -> list[Branch]:
    """Return all branches of a session and all their ancestors in other sessions."""
    found: list[Branch] = []
    waiting, seen = [session_id], {session_id}
    while waiting:
        current = waiting.pop()
        own = tx.all(Branch, "branches.list_of_session", session_id=current)
        if not own or own[0].no != 0:
            # Branch 0 has a row only in a fork.
            found.append(Branch(session_id=current, no=0))
        found += own
        parents = {branch.parent_session_id for branch in own if branch.parent_session_id is not None}
        waiting += sorted(parents - seen)
        seen |= parents
    return found


def list_path(tx: ReadTx, *, session_id: str, branch_no: int) -> list[Segment]:
    """Return the segments of messages that make up a branch, oldest first."""
    return path(list_branches(tx, session_id), session_id=session_id, no=branch_no)


def add_branch(tx: Tx, branch: Branch, *, created_at: Micros | None = None) -> None:
    """Add a branch, created now unless ``created_at`` is given."""
    tx.run("branches.add", **asdict(branch) | {"created_at": tx.now if created_at is None else created_at})


def activate(tx: Tx, *, session_id: str, no: int, message_count: int) -> None:
    """Make a branch the active one; ``message_count`` is the number of messages on its path."""
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
    """Link a session to the session or the other program that it came from."""
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
    """Return the task that a session was opened for in this store, or None; an imported link has another format."""
    task = tx.value("branches.find_delegation", session_id=session_id)
    try:
        return None if task is None else Delegation.parse(task)
    except InvalidValue:
        return None
