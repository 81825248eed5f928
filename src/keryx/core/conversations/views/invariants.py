"""The invariants of conversations: counters, branches, keys and events."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from keryx.core.conversations.rules.branch import path
from keryx.core.conversations.tables import branch_paths, branches
from keryx.core.values.invariant import Breach, Checks
from keryx.errors import InvalidValue
from keryx.store.database import ReadTx

CHECKS: Final[Checks] = {
    "conversation_invariants.crossed_keys": (
        "I4",
        "key {} points to a session of another audience, or in the bin",
    ),
    "conversation_invariants.wrong_totals": ("I6", "the totals ({} messages) differ from the rows"),
    "conversation_invariants.wrong_counts": ("I6", "the count of {} messages differs from the rows"),
    "conversation_invariants.rootless_branches": ("I6", "the parent message of branch {} does not exist"),
    "conversation_invariants.stray_messages": (
        "I6",
        "the branch of message {} does not exist, or begins after it",
    ),
    "conversation_invariants.doubled_places": ("I6", "several messages have the number {}"),
    "conversation_invariants.gaps_in_streams": ("I6", "the events up to {} have a gap"),
    "conversation_invariants.gaps_in_personal_streams": ("I6", "the events of person {} have a gap"),
    "conversation_invariants.messages_without_event": (
        "I6",
        "the feed does not have an event for each of the {} messages",
    ),
}


class BranchedSession(NamedTuple):
    """A session whose active branch has a parent."""

    session_id: str
    active_branch_no: int
    last_branch_no: int
    message_count: int


def follow_branches(tx: ReadTx) -> Iterator[Breach]:
    """Check the path of the active branch of each session with branches."""
    for session in tx.all(BranchedSession, "conversation_invariants.list_branched"):
        yield from _follow(tx, session)


def _follow(tx: ReadTx, session: BranchedSession) -> Iterator[Breach]:
    session_id = session.session_id
    known = branches.list_branches(tx, session_id)
    newest = max(branch.no for branch in known if branch.session_id == session_id)
    if newest > session.last_branch_no:
        yield Breach(
            rule="I6",
            session_id=session_id,
            what=f"last_branch_no is {session.last_branch_no}, but branch {newest} exists",
        )
    try:
        count = branch_paths.count_path(tx, path(known, session_id=session_id, no=session.active_branch_no))
    except InvalidValue as error:
        yield Breach(rule="I6", session_id=session_id, what=str(error))
        return
    if count != session.message_count:
        what = f"message_count is {session.message_count}, but the active branch has {count} messages"
        yield Breach(rule="I6", session_id=session_id, what=what)
