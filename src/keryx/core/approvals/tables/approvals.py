"""Approvals: durable questions to a person, and the one answer each gets."""

from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.approvals.rules.approval import Approval, ApprovalId, ApprovalState
from keryx.core.approvals.rules.approval_rule import CallToApprove
from keryx.core.people.rules.person import PersonId
from keryx.errors import NotFound
from keryx.store.codec import clean_text
from keryx.store.database import ReadTx, Tx


class ApprovalRecord(NamedTuple):
    """A row of the table."""

    id: ApprovalId
    session_id: str
    turn_id: int
    call_id: str
    person_id: PersonId
    question: str
    state: ApprovalState
    asked_at: Micros
    expires_at: Micros
    answered_by: PersonId | None
    answered_at: Micros | None
    note: str | None
    covers: str | None
    """What a lasting yes reaches; None where none may be given."""
    rule_id: int | None
    """The lasting yes by which it was decided without asking."""

    @property
    def approval(self) -> Approval:
        """As much of it as the rules need."""
        return Approval(
            id=self.id,
            person_id=self.person_id,
            question=self.question,
            asked_at=self.asked_at,
            expires_at=self.expires_at,
            state=self.state,
            decided_at=self.answered_at,
            decided_by=self.answered_by,
        )


def add_approval(
    tx: Tx, *, question: str, expires_at: Micros, covers: str | None = None, **about: str | int
) -> ApprovalId:
    """Put a question to a person and return its id.

    ``about`` are session_id, turn_id, call_id and person_id; nobody was asked about this call before.
    """
    row = tx.row(
        "approvals.add", question=clean_text(question), expires_at=expires_at, covers=covers, **about
    )
    assert row is not None
    return ApprovalId(row[0])


def add_allowed(
    tx: Tx, wish: CallToApprove, *, rule_id: int, expires_at: Micros, **about: str | int
) -> ApprovalId:
    """Note that a call is allowed without asking, and by which rule; return the approval's id.

    ``about`` are session_id, turn_id and person_id; nobody was asked about this call before.
    """
    row = tx.row(
        "approvals.add_allowed",
        call_id=wish.call_id,
        question=clean_text(wish.question),
        covers=wish.covers,
        rule_id=rule_id,
        expires_at=expires_at,
        **about,
    )
    assert row is not None
    return ApprovalId(row[0])


def get_approval(tx: ReadTx, approval_id: int) -> ApprovalRecord:
    """Return an approval by id."""
    row = tx.one(ApprovalRecord, "approvals.find", approval_id=approval_id)
    if row is None:
        raise NotFound(f"There is no question {approval_id}.")
    return row


def decide(tx: Tx, approval: Approval) -> None:
    """Store the decision of a pending approval; a decided one never changes."""
    tx.run(
        "approvals.decide",
        approval_id=approval.id,
        state=approval.state,
        answered_by=approval.decided_by,
        answered_at=approval.decided_at,
    )


def list_expired(tx: ReadTx, *, limit: int) -> list[tuple[ApprovalId, str]]:
    """Return pending approvals whose time is up, with their sessions, in the order in which to lock these."""
    return [(ApprovalId(row[0]), row[1]) for row in tx.rows("approvals.list_expired", limit=limit)]


def find_verdict(tx: ReadTx, *, turn_id: int, call_id: str) -> ApprovalState | None:
    """Return how it stands with the question about a call; None where nobody was asked."""
    found: ApprovalState | None = tx.value("approvals.find_of_call", turn_id=turn_id, call_id=call_id)
    return found


def keep_answer(tx: Tx, approval_id: int, text: str) -> None:
    """Keep in which words a question was answered."""
    tx.run("approvals.keep_answer", approval_id=approval_id, note=clean_text(text))


def find_answer(tx: ReadTx, *, turn_id: int, call_id: str) -> str | None:
    """Return in which words the question about a call was answered; None where it was not, or without words."""
    found: str | None = tx.value("approvals.find_answer", turn_id=turn_id, call_id=call_id)
    return found


def adopt(tx: Tx, *, from_turn_id: int, call_id: str, turn_id: int) -> None:
    """Let what a person said about a call count for the turn that goes on with the call."""
    tx.run("approvals.adopt", from_turn_id=from_turn_id, call_id=call_id, turn_id=turn_id)


def move_to_person(tx: Tx, *, from_person_id: int, to_person_id: int) -> None:
    """Put one person's open questions to another, who they turned out to be."""
    tx.run("approvals.move_to_person", from_person_id=from_person_id, to_person_id=to_person_id)


def drop_of_session(tx: Tx, session_id: str) -> None:
    """Delete the questions that the session's turns asked."""
    tx.run("approvals.drop_of_session", session_id=session_id)
