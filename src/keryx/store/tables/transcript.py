"""Where reading a transcript begins."""

from typing import NamedTuple

from keryx.domain.message import Message
from keryx.store.database import ReadTx
from keryx.store.tables.messages import read_message


class Head(NamedTuple):
    """The branch that is shown, and the last message before its own ones (0: it begins with nothing)."""

    branch_no: int
    parent_seq: int


def find_head(tx: ReadTx, session_id: str, *, person_id: int) -> Head | None:
    """Return the head of a session this person may see, or None."""
    row = tx.row("transcript.find_head", session_id=session_id, person_id=person_id)
    return None if row is None else Head._make(row)


def list_last(tx: ReadTx, session_id: str, *, person_id: int, last_seq: int, limit: int) -> list[Message]:
    """Return the newest messages of the shown branch's own up to a number, newest first; none if not visible."""
    rows = tx.rows(
        "transcript.list_last", session_id=session_id, person_id=person_id, last_seq=last_seq, limit=limit
    )
    return list(map(read_message, rows))
