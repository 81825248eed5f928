"""What must hold in every store at every moment, whatever crashed: the promises, as far as rows can tell.

The same check runs after every step of the tests, in ``keryx doctor`` and after a restore. It changes nothing.
"""

from collections.abc import Iterator

from keryx.domain.branch import path
from keryx.errors import InvalidValue
from keryx.store.database import ReadTx
from keryx.store.tables import branches, invariants, paths
from keryx.store.tables.invariants import Branched, Rule
from keryx.values import dataclass

__all__ = ["Breach", "check_invariants"]

FOUND_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A promise that the rows contradict: which one, in which session, and how."""

    rule: Rule
    session_id: str | None
    what: str


def check_invariants(tx: ReadTx, *, found_max: int = FOUND_MAX) -> list[Breach]:
    """Return every breach, of each kind at most ``found_max``; none is what a store should have."""
    breaches = [
        Breach(rule=rule, session_id=found.session_id, what=what.format(found.subject))
        for check, (rule, what) in invariants.CHECKS.items()
        for found in invariants.list_contradictions(tx, check, limit=found_max)
    ]
    for session in invariants.list_branched(tx):
        breaches += _check_branched(tx, session)
    return breaches


def _check_branched(tx: ReadTx, session: Branched) -> Iterator[Breach]:
    """Follow what a session with branches shows, and where its summaries stand."""
    session_id = session.session_id
    known = branches.list_branches(tx, session_id)
    newest = max(branch.no for branch in known if branch.session_id == session_id)
    if newest > session.last_branch_no:
        yield Breach(rule="I6", session_id=session_id, what=f"branch {newest} was never counted")
    try:
        count = paths.count_path(tx, path(known, session_id=session_id, no=session.active_branch_no))
    except InvalidValue as error:
        yield Breach(rule="I6", session_id=session_id, what=str(error))
        return
    if count != session.message_count:
        what = f"{session.message_count} messages are counted and {count} are shown"
        yield Breach(rule="I6", session_id=session_id, what=what)
    for cover in branches.list_covers(tx, session_id):
        covered = path(known, session_id=session_id, no=cover.branch_no)
        if not all(paths.is_on_path(tx, covered, seq) for seq in (cover.first_seq, cover.last_seq)):
            what = f"summary {cover.no} stands for messages that are not there"
            yield Breach(rule="I8", session_id=session_id, what=what)
