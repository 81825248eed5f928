"""What a person has begun to write in a session, and up to where they have read it: theirs alone."""

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
    """Store the text that follows ``revision`` (0: none) and return the new one; None when that is not the last."""
    found: int | None = tx.value(
        "drafts.save", person_id=person_id, session_id=session_id, text=to_json(text), revision=revision
    )
    return found


def find_draft(tx: ReadTx, *, person_id: int, session_id: str) -> Draft | None:
    """Return what a person was writing, or None."""
    row = tx.row("drafts.find", person_id=person_id, session_id=session_id)
    return None if row is None else Draft(from_json(row[0]), row[1], row[2])


def mark_read(tx: Tx, *, person_id: int, session_id: str, seq: int) -> bool:
    """Note that a person has read up to a message; say whether that is further than before."""
    return tx.run("drafts.mark_read", person_id=person_id, session_id=session_id, seq=seq) == 1


def find_mark(tx: ReadTx, *, person_id: int, session_id: str) -> int:
    """Return up to which message a person has read; 0 for none."""
    row = tx.row("drafts.find_mark", person_id=person_id, session_id=session_id)
    return 0 if row is None else row[0]
