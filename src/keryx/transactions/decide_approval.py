"""Decide an approval: by a person's answer, or because none came in time.

Either way the decision is stored with the inbox item that lets the waiting turn go on, so a decided question never
leaves a turn waiting and an undecided one never starts it.
"""

from keryx.domain.approval import (
    AlreadyDecided,
    Approval,
    Decided,
    NotAsked,
    TooLate,
    Verdict,
    answer,
    expire,
)
from keryx.domain.part import TextPart
from keryx.domain.person import PersonId
from keryx.store.database import Tx
from keryx.store.tables import approvals, feed, inbox, sessions, turns
from keryx.store.tables.approvals import ApprovalRecord

PLATFORM = "approval"
"""Where the refs of answers are unique."""
EXPIRED_AT_ONCE_MAX = 50


def decide_approval(
    tx: Tx, approval_id: int, verdict: Verdict, *, person_id: PersonId
) -> Decided | AlreadyDecided | TooLate | NotAsked:
    """Answer a question for the person it was put to; the first answer wins, and a late one is told so."""
    record = _locked(tx, approval_id, approvals.get_approval(tx, approval_id).session_id)
    outcome = answer(record.approval, verdict, person_id=person_id, now=tx.now)
    match outcome:
        case Decided() | TooLate() if record.state == "pending":
            _store(tx, record, outcome.approval, person_id=person_id)
        case _:
            pass
    return outcome


def expire_approvals(tx: Tx, *, limit: int = EXPIRED_AT_ONCE_MAX) -> list[Approval]:
    """Let the turns go on whose questions nobody answered in time, and return these; fewer than ``limit`` are all."""
    expired = []
    for approval_id, session_id in approvals.list_expired(tx, limit=limit):
        record = _locked(tx, approval_id, session_id)
        approval = expire(record.approval, now=tx.now)
        if record.state == "pending":
            _store(tx, record, approval, person_id=record.person_id)
            expired.append(approval)
    return expired


def _locked(tx: Tx, approval_id: int, session_id: str) -> ApprovalRecord:
    """Return the approval as it is once nobody else can decide it."""
    sessions.lock_session(tx, session_id)
    return approvals.get_approval(tx, approval_id)


def _store(tx: Tx, record: ApprovalRecord, approval: Approval, *, person_id: PersonId) -> None:
    approvals.decide(tx, approval)
    feed.add_event(tx, record.session_id, "approval", record.id)
    turn = turns.get_turn(tx, record.turn_id)
    if turn.state != "waiting":
        return  # it was stopped meanwhile; an answer must not start another
    inbox_id = inbox.add_item(
        tx,
        session_id=record.session_id,
        kind="approval",
        source=turn.origin or sessions.get_session(tx, record.session_id).source,
        platform=PLATFORM,
        ref=f"approval:{record.id}",
        parts=(TextPart(text=approval.state),),
        person_id=person_id,
    )
    feed.add_event(tx, record.session_id, "inbox", inbox_id)
