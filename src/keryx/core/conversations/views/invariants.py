"""What must hold in the rows of conversations at every moment: counters, branches, surfaces and facts."""

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
        "key {} shows what was said to others, or what was deleted",
    ),
    "conversation_invariants.wrong_totals": ("I6", "the totals ({} messages) are not what the rows say"),
    "conversation_invariants.wrong_counts": ("I6", "the count of {} messages is not what the rows say"),
    "conversation_invariants.rootless_branches": ("I6", "branch {} goes on from a message that is not there"),
    "conversation_invariants.stray_messages": (
        "I6",
        "message {} is on a branch that is not there, or began after it",
    ),
    "conversation_invariants.doubled_places": ("I6", "place {} holds more than one message"),
    "conversation_invariants.gaps_in_streams": ("I6", "the facts up to {} have a gap"),
    "conversation_invariants.gaps_in_personal_streams": ("I6", "the facts of person {} have a gap"),
    "conversation_invariants.untold_messages": ("I6", "the {} messages are not those the feed tells of"),
}


class BranchedSession(NamedTuple):
    """A session whose path has to be followed to know what it shows."""

    session_id: str
    active_branch_no: int
    last_branch_no: int
    message_count: int


def follow_branches(tx: ReadTx) -> Iterator[Breach]:
    """Follow what each session with branches shows."""
    for session in tx.all(BranchedSession, "conversation_invariants.list_branched"):
        yield from _follow(tx, session)


def _follow(tx: ReadTx, session: BranchedSession) -> Iterator[Breach]:
    session_id = session.session_id
    known = branches.list_branches(tx, session_id)
    newest = max(branch.no for branch in known if branch.session_id == session_id)
    if newest > session.last_branch_no:
        yield Breach(rule="I6", session_id=session_id, what=f"branch {newest} was never counted")
    try:
        count = branch_paths.count_path(tx, path(known, session_id=session_id, no=session.active_branch_no))
    except InvalidValue as error:
        yield Breach(rule="I6", session_id=session_id, what=str(error))
        return
    if count != session.message_count:
        what = f"{session.message_count} messages are counted and {count} are shown"
        yield Breach(rule="I6", session_id=session_id, what=what)
