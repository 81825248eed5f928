"""Questions that wait for a person's answer."""

from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.approvals.rules.approval import ASK_USER, ApprovalId
from keryx.core.approvals.tables.approvals import ApprovalRecord
from keryx.store.database import ReadTx


class PendingQuestion(NamedTuple):
    """Something a person is asked to allow."""

    id: int
    text: str


class OpenQuestion(NamedTuple):
    """A question that waits for its answer."""

    id: ApprovalId
    text: str
    tool: str
    covers: str | None
    expires_at: Micros


def list_questions(tx: ReadTx, session_id: str, *, person_id: int) -> list[PendingQuestion]:
    """Return what a session waits for this person to allow, oldest first."""
    return tx.all(
        PendingQuestion, "open_questions.list_of_session", session_id=session_id, person_id=person_id
    )


def find_question(tx: ReadTx, *, turn_id: int, person_id: int) -> ApprovalRecord | None:
    """Return the question of a turn that the next words of a person answer, or None."""
    return tx.one(
        ApprovalRecord, "open_questions.find_asked", turn_id=turn_id, person_id=person_id, name=ASK_USER
    )


def find_open(tx: ReadTx, *, turn_id: int, person_id: int) -> OpenQuestion | None:
    """Return what a turn waits for a person to answer, or None."""
    return tx.one(OpenQuestion, "open_questions.find_waiting", turn_id=turn_id, person_id=person_id)
