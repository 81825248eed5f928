"""Approvals: durable questions to a person, and the one answer each gets."""

from typing import NamedTuple

from keryx.clock import Micros
from keryx.domain.approval import ASK_USER, Approval, ApprovalId, ApprovalState
from keryx.domain.approval_rule import Wish
from keryx.domain.person import PersonId
from keryx.errors import NotFound
from keryx.store.codec import clean_text
from keryx.store.database import ReadTx, Tx


class ApprovalRecord(NamedTuple):
    """One row, in the order of its columns."""

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


class OpenQuestion(NamedTuple):
    """A question that waits for its answer."""

    id: ApprovalId
    text: str
    tool: str
    covers: str | None
    expires_at: Micros


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


def add_allowed(tx: Tx, wish: Wish, *, rule_id: int, expires_at: Micros, **about: str | int) -> ApprovalId:
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
    row = tx.row("approvals.find", approval_id=approval_id)
    if row is None:
        raise NotFound(f"There is no question {approval_id}.")
    return ApprovalRecord._make(row)


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
    row = tx.row("approvals.find_of_call", turn_id=turn_id, call_id=call_id)
    return None if row is None else row[0]


def find_question(tx: ReadTx, *, turn_id: int, person_id: int) -> ApprovalRecord | None:
    """Return the question of a turn that the next words of a person answer, or None."""
    row = tx.row("approvals.find_question", turn_id=turn_id, person_id=person_id, name=ASK_USER)
    return None if row is None else ApprovalRecord._make(row)


def keep_answer(tx: Tx, approval_id: int, text: str) -> None:
    """Keep in which words a question was answered."""
    tx.run("approvals.keep_answer", approval_id=approval_id, note=clean_text(text))


def find_answer(tx: ReadTx, *, turn_id: int, call_id: str) -> str | None:
    """Return in which words the question about a call was answered; None where it was not, or without words."""
    row = tx.row("approvals.find_answer", turn_id=turn_id, call_id=call_id)
    return None if row is None else row[0]


def find_open(tx: ReadTx, *, turn_id: int, person_id: int) -> OpenQuestion | None:
    """Return what a turn waits for a person to answer, or None."""
    row = tx.row("approvals.find_open", turn_id=turn_id, person_id=person_id)
    return None if row is None else OpenQuestion._make(row)
