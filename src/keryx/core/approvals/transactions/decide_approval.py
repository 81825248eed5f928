"""Decide an approval: by a person's answer, or by expiry.

The decision is stored together with the inbox item that resumes the waiting turn. So a decided question never leaves a
turn waiting, and a pending one never resumes it. An answer that makes a standing approval adds its rule here too.
"""

from dataclasses import replace

from keryx.core.approvals import tables as approvals
from keryx.core.approvals.rules.approval import (
    Answered,
    Approval,
    ApprovalDecided,
    ApprovalExpired,
    NoStandingApproval,
    NotThePersonAsked,
    Scope,
    Verdict,
    answer,
    expire,
)
from keryx.core.approvals.rules.approval_rule import ApprovalRule
from keryx.core.approvals.views import find_question
from keryx.core.conversations.rules.message import TextPart, text_of
from keryx.core.conversations.rules.source import LOCAL_CLI
from keryx.core.conversations.tables import feed, sessions
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.transactions.queue_delivery import queue_delivery
from keryx.core.deliveries.views.reply_addresses import reply_addresses
from keryx.core.people.rules.person import PersonId
from keryx.core.turns.rules.inbox import Inbound
from keryx.core.turns.tables import inbox, turns
from keryx.ids import Ids
from keryx.store.database import Tx

EXPIRED_AT_ONCE_MAX = 50
ELSEWHERE = "Question {number} was {verdict} elsewhere."
EXPIRED = "Question {number} was not answered in time, so it was not done: {question}"


def decide_approval(
    tx: Tx, approval_id: int, verdict: Verdict, *, person_id: PersonId, scope: Scope = "once"
) -> Answered | ApprovalDecided | ApprovalExpired | NotThePersonAsked | NoStandingApproval:
    """Answer a question as the person who was asked; the first answer counts, and a late answer changes nothing.

    With another ``scope`` than once, a yes also makes a standing approval: for this session, or for all.
    """
    pending = _lock_approval(tx, approval_id, approvals.get_approval(tx, approval_id).session_id)
    outcome = answer(pending, verdict, person_id=person_id, now=tx.now)
    match outcome:
        case Answered() if verdict == "approved" and scope != "once":
            if pending.covers is None:
                return NoStandingApproval()
            _store(tx, outcome.approval, person_id=person_id)
            return replace(outcome, rule=_add_rule(tx, pending, pattern=pending.covers, scope=scope))
        case Answered() | ApprovalExpired() if pending.state == "pending":
            _store(tx, outcome.approval, person_id=person_id)
        case _:
            pass
    return outcome


def answer_question(tx: Tx, inbound: Inbound, *, turn: turns.Turn, person_id: PersonId) -> int | None:
    """Accept a message as the answer to the question that a waiting turn asked in its own words; return the inbox item.

    Return None if no such question is open for this person, or the message has no text: then the message is an ordinary
    one. The answer is stored with the question, so it outlives the turn. The session must be locked.
    """
    text = text_of(inbound.parts).strip()
    question = find_question(tx, turn_id=turn.id, person_id=person_id) if text else None
    if question is None:
        return None
    outcome = answer(question, "approved", person_id=person_id, now=tx.now)
    if not isinstance(outcome, Answered):
        return None
    approvals.decide(tx, outcome.approval)
    approvals.store_answer(tx, question.id, text)
    # The turn continues at the place of the answer, which may differ from the place of the question.
    turns.set_origin(tx, turn.id, origin=inbound.source, person_id=person_id)
    inbox_id = inbox.add_item(
        tx,
        session_id=turn.session_id,
        kind="approval",
        source=inbound.source,
        ref=inbound.ref,
        parts=inbound.parts,
        person_id=person_id,
        sent_at=inbound.sent_at,
    )
    feed.add_event(tx, turn.session_id, "approval", question.id)
    feed.add_event(tx, turn.session_id, "inbox", inbox_id)
    return inbox_id


def announce_decision(tx: Tx, approval_id: int, verdict: Verdict, *, answered_at: Address, ids: Ids) -> None:
    """Tell all places that show a question that it was answered, except the place of the answer."""
    approval = approvals.get_approval(tx, approval_id)
    text = ELSEWHERE.format(number=approval.id, verdict="allowed" if verdict == "approved" else "refused")
    _notify(tx, approval, text, answered_at=answered_at, ids=ids)


def expire_approvals(tx: Tx, *, ids: Ids, limit: int = EXPIRED_AT_ONCE_MAX) -> list[Approval]:
    """Expire unanswered questions, tell the places that show them, and let their turns continue; return the questions.

    Fewer than ``limit`` are all.
    """
    expired = []
    for approval_id, session_id in approvals.list_expired(tx, limit=limit):
        pending = _lock_approval(tx, approval_id, session_id)
        approval = expire(pending, now=tx.now)
        if pending.state == "pending":
            _store(tx, approval, person_id=approval.person_id)
            _notify(tx, approval, EXPIRED.format(number=approval.id, question=approval.question), ids=ids)
            expired.append(approval)
    return expired


def _lock_approval(tx: Tx, approval_id: int, session_id: str) -> Approval:
    """Lock the session, so that no other answer is stored meanwhile, and return the approval."""
    sessions.lock_session(tx, session_id)
    return approvals.get_approval(tx, approval_id)


def _store(tx: Tx, approval: Approval, *, person_id: PersonId) -> None:
    approvals.decide(tx, approval)
    feed.add_event(tx, approval.session_id, "approval", approval.id)
    turn = turns.get_turn(tx, approval.turn_id)
    if turn.state != "waiting":
        return  # The turn was stopped meanwhile; an answer must not start another one.
    inbox_id = inbox.add_item(
        tx,
        session_id=approval.session_id,
        kind="approval",
        source=turn.origin or sessions.get_session(tx, approval.session_id).source,
        is_internal=True,
        ref=f"approval:{approval.id}",
        parts=(TextPart(text=approval.state),),
        person_id=person_id,
    )
    feed.add_event(tx, approval.session_id, "inbox", inbox_id)


def _add_rule(tx: Tx, approval: Approval, *, pattern: str, scope: Scope) -> ApprovalRule:
    rule = approvals.add_rule(
        tx,
        person_id=approval.person_id,
        session_id=approval.session_id if scope == "session" else None,
        tool=turns.get_step(tx, turn_id=approval.turn_id, call_id=approval.call_id).name,
        pattern=pattern,
        approval_id=approval.id,
    )
    feed.add_personal_event(tx, approval.person_id, "rule", rule.id)
    return rule


def _notify(tx: Tx, approval: Approval, text: str, *, answered_at: Address | None = None, ids: Ids) -> None:
    turn = turns.get_turn(tx, approval.turn_id)
    if turn.state != "waiting":
        return
    for address in reply_addresses(tx, turn):
        if answered_at is None or not (address == answered_at or _is_other_terminal(address, turn)):
            queue_delivery(
                tx, text, to=address, key=ids.token(), session_id=approval.session_id, turn_id=turn.id
            )


def _is_other_terminal(address: Address, turn: turns.Turn) -> bool:
    """Return whether this is a terminal without a delivered question: terminals show open questions and answers."""
    asked_at = None if turn.origin is None else Address.of(turn.origin)
    return address.platform == LOCAL_CLI.platform and address != asked_at
