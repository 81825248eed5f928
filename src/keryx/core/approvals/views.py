"""The questions that wait for a person's answer, a person's standing approvals, and the invariants of approvals."""

from typing import Final, NamedTuple

from keryx.clock import Micros
from keryx.core.approvals.rules.approval import ASK_USER, Approval, ApprovalId
from keryx.core.values.invariant import Checks
from keryx.store.database import ReadTx


class PendingQuestion(NamedTuple):
    """A pending question of a session."""

    id: int
    text: str


class OpenQuestion(NamedTuple):
    """The question that a turn waits for, and the tool that it is about."""

    id: ApprovalId
    text: str
    tool: str
    covers: str | None
    expires_at: Micros


def list_questions(tx: ReadTx, session_id: str, *, person_id: int) -> list[PendingQuestion]:
    """Return the questions of a session that wait for this person, oldest first."""
    return tx.all(
        PendingQuestion, "approval_views.list_questions", session_id=session_id, person_id=person_id
    )


def find_question(tx: ReadTx, *, turn_id: int, person_id: int) -> Approval | None:
    """Return the question of a turn that the person's next message answers, or None."""
    return tx.one(
        Approval, "approval_views.find_question", turn_id=turn_id, person_id=person_id, name=ASK_USER
    )


def find_open(tx: ReadTx, *, turn_id: int, person_id: int) -> OpenQuestion | None:
    """Return the question that a turn asked this person and waits for, or None."""
    return tx.one(OpenQuestion, "approval_views.find_open", turn_id=turn_id, person_id=person_id)


class ListedRule(NamedTuple):
    """A standing approval; ``session_id`` is None if it applies everywhere."""

    id: int
    tool: str
    pattern: str
    session_id: str | None
    since_at: Micros
    session_title: str | None


def list_rules(tx: ReadTx, person_id: int, *, limit: int) -> list[ListedRule]:
    """Return a person's standing approvals, oldest first."""
    return tx.all(ListedRule, "approval_views.list_rules", person_id=person_id, limit=limit)


CHECKS: Final[Checks] = {
    "approval_views.crossed_rules": (
        "I4",
        "approval {} was given by a rule of another person or of another session",
    ),
}
