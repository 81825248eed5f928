"""Decide an approval: by a person's answer, or because none came in time.

Either way the decision is stored with the inbox item that lets the waiting turn go on, so a decided question never
leaves a turn waiting and an undecided one never starts it. A lasting yes makes its rule in the same transaction.
"""

from dataclasses import replace

from keryx.core.approvals.rules.approval import (
    AlreadyDecided,
    Approval,
    Decided,
    NotAsked,
    OnlyOnce,
    Scope,
    TooLate,
    Verdict,
    answer,
    expire,
)
from keryx.core.approvals.rules.approval_rule import ApprovalRule
from keryx.core.approvals.tables import approval_rules, approvals
from keryx.core.approvals.tables.approvals import ApprovalRecord
from keryx.core.conversations.rules.part import TextPart
from keryx.core.conversations.rules.source import LOCAL_CLI
from keryx.core.conversations.tables import feed, sessions
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.transactions.queue_delivery import About, queue_delivery
from keryx.core.deliveries.views.reply_addresses import reply_addresses
from keryx.core.people.rules.person import PersonId
from keryx.core.turns.tables import inbox, turns
from keryx.ids import Ids
from keryx.store.database import Tx

EXPIRED_AT_ONCE_MAX = 50
ELSEWHERE = "Question {number} was {verdict} elsewhere."
EXPIRED = "Question {number} was not answered in time, so it was not done: {question}"


def decide_approval(
    tx: Tx, approval_id: int, verdict: Verdict, *, person_id: PersonId, scope: Scope = "once"
) -> Decided | AlreadyDecided | TooLate | NotAsked | OnlyOnce:
    """Answer a question for the person it was put to; the first answer wins, and a late one is told so.

    With a ``scope`` a yes also holds for what comes later: in this session, or always.
    """
    record = _locked(tx, approval_id, approvals.get_approval(tx, approval_id).session_id)
    outcome = answer(record.approval, verdict, person_id=person_id, now=tx.now)
    match outcome:
        case Decided() if verdict == "approved" and scope != "once":
            if record.covers is None:
                return OnlyOnce()
            _store(tx, record, outcome.approval, person_id=person_id)
            return replace(outcome, rule=_add_rule(tx, record, pattern=record.covers, scope=scope))
        case Decided() | TooLate() if record.state == "pending":
            _store(tx, record, outcome.approval, person_id=person_id)
        case _:
            pass
    return outcome


def tell_decided(tx: Tx, approval_id: int, verdict: Verdict, *, answered_at: Address, ids: Ids) -> None:
    """Say wherever a question stands that it was answered, but where that was done."""
    record = approvals.get_approval(tx, approval_id)
    text = ELSEWHERE.format(number=record.id, verdict="allowed" if verdict == "approved" else "refused")
    _tell(tx, record, text, answered_at=answered_at, ids=ids)


def expire_approvals(tx: Tx, *, ids: Ids, limit: int = EXPIRED_AT_ONCE_MAX) -> list[Approval]:
    """Expire unanswered questions so that their turns continue, and return them; fewer than ``limit`` are all.

    Where a question was asked, it is said that it has expired.
    """
    expired = []
    for approval_id, session_id in approvals.list_expired(tx, limit=limit):
        record = _locked(tx, approval_id, session_id)
        approval = expire(record.approval, now=tx.now)
        if record.state == "pending":
            _store(tx, record, approval, person_id=record.person_id)
            _tell(tx, record, EXPIRED.format(number=record.id, question=record.question), ids=ids)
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
        is_internal=True,
        ref=f"approval:{record.id}",
        parts=(TextPart(text=approval.state),),
        person_id=person_id,
    )
    feed.add_event(tx, record.session_id, "inbox", inbox_id)


def _add_rule(tx: Tx, record: ApprovalRecord, *, pattern: str, scope: Scope) -> ApprovalRule:
    rule = approval_rules.add_rule(
        tx,
        person_id=record.person_id,
        session_id=record.session_id if scope == "session" else None,
        tool=turns.get_step(tx, turn_id=record.turn_id, call_id=record.call_id).name,
        pattern=pattern,
        approval_id=record.id,
    )
    feed.add_personal_event(tx, record.person_id, "rule", rule.id)
    return rule


def _tell(tx: Tx, record: ApprovalRecord, text: str, *, answered_at: Address | None = None, ids: Ids) -> None:
    turn = turns.get_turn(tx, record.turn_id)
    if turn.state != "waiting":
        return  # nobody waits for it any more
    for address in reply_addresses(tx, turn):
        if answered_at is not None and (address == answered_at or _shows_by_itself(address, turn)):
            continue
        about: About = {"session_id": record.session_id, "turn_id": record.turn_id}
        queue_delivery(tx, text, to=address, key=ids.token(), **about)


def _shows_by_itself(address: Address, turn: turns.Turn) -> bool:
    """Say whether this is a terminal that was sent no question: it shows what waits, and what others answer."""
    asked_at = None if turn.origin is None else Address.of(turn.origin)
    return address.platform == LOCAL_CLI.platform and address != asked_at
