"""The result of a delegated task."""

from keryx.core.conversations.views.transcript import list_transcript
from keryx.core.turns.tables import inbox
from keryx.store.database import ReadTx
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnded:
    """The answer of a task, or the reason why it has none."""

    answer: str | None
    reason: str | None = None


def find_ended(tx: ReadTx, inbox_id: int, *, person_id: int) -> TaskEnded | None:
    """Return how a task ended, or None while it is open."""
    item = inbox.find_item(tx, inbox_id)
    if item is None:
        return TaskEnded(answer=None, reason="its session was purged")
    match item.fate:
        case None:
            return None
        case "answered" | "merged":
            return TaskEnded(answer=_last_answer(tx, item.session_id, person_id=person_id))
        case "cancelled":
            return TaskEnded(answer=None, reason="it was stopped")
        case _:
            return TaskEnded(answer=None, reason=item.fate_note or "it failed")


def _last_answer(tx: ReadTx, session_id: str, *, person_id: int) -> str:
    last = list_transcript(tx, session_id, person_id=person_id, last=1)
    return last[0].text if last and last[0].role == "assistant" else ""
