"""Approvals: stored questions to a person with one answer each; and approval rules, the standing approvals of people.

A dropped rule stays dropped.
"""

from keryx.clock import Micros
from keryx.core.approvals.rules.approval import Approval, ApprovalId, ApprovalState
from keryx.core.approvals.rules.approval_rule import ApprovalRule, CallToApprove
from keryx.errors import NotFound
from keryx.store.codec import clean_text
from keryx.store.database import ReadTx, Tx


def add_approval(
    tx: Tx, *, question: str, expires_at: Micros, covers: str | None = None, **about: str | int
) -> ApprovalId:
    """Add a pending question and return its id.

    ``about`` are session_id, turn_id, call_id and person_id. A call has one question at most.
    """
    return ApprovalId(
        tx.value(
            "approvals.add", question=clean_text(question), expires_at=expires_at, covers=covers, **about
        )
    )


def add_allowed(
    tx: Tx, call: CallToApprove, *, rule_id: int, expires_at: Micros, **about: str | int
) -> ApprovalId:
    """Add the approval of a call that a rule allows without a question, and return its id.

    ``about`` are session_id, turn_id and person_id.
    """
    approval_id = tx.value(
        "approvals.add_allowed",
        call_id=call.call_id,
        question=clean_text(call.question),
        covers=call.covers,
        rule_id=rule_id,
        expires_at=expires_at,
        **about,
    )
    return ApprovalId(approval_id)


def get_approval(tx: ReadTx, approval_id: int) -> Approval:
    """Return an approval by id."""
    approval = tx.one(Approval, "approvals.find", approval_id=approval_id)
    if approval is None:
        raise NotFound(f"There is no question {approval_id}.")
    return approval


def decide(tx: Tx, approval: Approval) -> None:
    """Store the decision of a pending approval; a decided one never changes."""
    tx.run(
        "approvals.decide",
        approval_id=approval.id,
        state=approval.state,
        answered_by=approval.answered_by,
        answered_at=approval.answered_at,
    )


def list_expired(tx: ReadTx, *, limit: int) -> list[tuple[ApprovalId, str]]:
    """Return pending approvals past their expiry, with their sessions, in the order in which to lock the sessions."""
    return [(ApprovalId(row[0]), row[1]) for row in tx.rows("approvals.list_expired", limit=limit)]


def find_verdict(tx: ReadTx, *, turn_id: int, call_id: str) -> ApprovalState | None:
    """Return the state of the question about a call, or None if there is no question."""
    found: ApprovalState | None = tx.value("approvals.find_of_call", turn_id=turn_id, call_id=call_id)
    return found


def store_answer(tx: Tx, approval_id: int, text: str) -> None:
    """Store the words of an answer."""
    tx.run("approvals.store_answer", approval_id=approval_id, note=clean_text(text))


def find_answer(tx: ReadTx, *, turn_id: int, call_id: str) -> str | None:
    """Return the words with which the question about a call was answered, or None."""
    found: str | None = tx.value("approvals.find_answer", turn_id=turn_id, call_id=call_id)
    return found


def move_to_turn(tx: Tx, *, from_turn_id: int, call_id: str, turn_id: int) -> None:
    """Move the question about a call to the turn that continues the call."""
    tx.run("approvals.move_to_turn", from_turn_id=from_turn_id, call_id=call_id, turn_id=turn_id)


def move_to_person(tx: Tx, *, from_person_id: int, to_person_id: int) -> None:
    """Move a person's pending questions to the person that they were merged into."""
    tx.run("approvals.move_to_person", from_person_id=from_person_id, to_person_id=to_person_id)


def drop_of_session(tx: Tx, session_id: str) -> None:
    """Delete the questions of the session's turns."""
    tx.run("approvals.drop_of_session", session_id=session_id)


def add_rule(
    tx: Tx, *, person_id: int, session_id: str | None, tool: str, pattern: str, approval_id: int
) -> ApprovalRule:
    """Store a standing approval, for one session or (None) for all, and return it."""
    rule = tx.one(
        ApprovalRule,
        "approvals.add_rule",
        person_id=person_id,
        session_id=session_id,
        tool=tool,
        pattern=pattern,
        approval_id=approval_id,
    )
    assert rule is not None
    return rule


def list_rules_for_call(tx: ReadTx, *, person_id: int, session_id: str, tool: str) -> list[ApprovalRule]:
    """Return a person's standing approvals for a tool that apply in a session, oldest first."""
    return tx.all(
        ApprovalRule, "approvals.list_rules_for_call", person_id=person_id, session_id=session_id, tool=tool
    )


def drop_rule(tx: Tx, rule_id: int, *, person_id: int) -> bool:
    """Drop a standing approval. Return False if this person has none with that number."""
    return tx.run("approvals.drop_rule", rule_id=rule_id, person_id=person_id) == 1


def drop_rules_of_session(tx: Tx, session_id: str) -> None:
    """Drop the standing approvals for one session."""
    tx.run("approvals.drop_rules_of_session", session_id=session_id)
