"""The draft and the read mark that a person has in a session."""

from typing import NamedTuple

from keryx.clock import Micros
from keryx.store.codec import from_json, to_json
from keryx.store.database import ReadTx, Tx


class Draft(NamedTuple):
    """A draft; each save raises ``revision``."""

    text: str
    revision: int
    updated_at: Micros


def save_draft(tx: Tx, *, person_id: int, session_id: str, text: str, revision: int) -> int | None:
    """Store a draft and return its revision; None if ``revision`` (0: no draft) is not the last one."""
    found: int | None = tx.value(
        "drafts.save", person_id=person_id, session_id=session_id, text=to_json(text), revision=revision
    )
    return found


def find_draft(tx: ReadTx, *, person_id: int, session_id: str) -> Draft | None:
    """Return the draft of a person, or None."""
    row = tx.row("drafts.find", person_id=person_id, session_id=session_id)
    return None if row is None else Draft(from_json(row[0]), row[1], row[2])


def mark_read(tx: Tx, *, person_id: int, session_id: str, seq: int) -> bool:
    """Set the read mark to message ``seq``; return False if it is there or further."""
    return tx.run("drafts.mark_read", person_id=person_id, session_id=session_id, seq=seq) == 1


def find_mark(tx: ReadTx, *, person_id: int, session_id: str) -> int:
    """Return the read mark of a person; 0 for none."""
    return tx.value("drafts.find_mark", person_id=person_id, session_id=session_id) or 0
