"""Memories: notes that outlive their session, for the audience that heard them and nobody else.

The text of a note never changes: an edit adds a note that names the one it replaces. Every change is recorded.
"""

from typing import Literal, NamedTuple

from keryx.clock import Micros
from keryx.core.context.rules.recall import fingerprint
from keryx.errors import NotFound
from keryx.store.codec import clean_text
from keryx.store.database import ReadTx, Tx

ChangeKind = Literal["kept", "edited", "forgotten", "restored"]


class Memory(NamedTuple):
    """A row of the table."""

    id: int
    audience_id: int
    text: str
    session_id: str | None
    seq: int | None
    author_id: int | None
    replaces_id: int | None
    fingerprint: str | None
    created_at: Micros
    forgotten_at: Micros | None


class Change(NamedTuple):
    """A change of a note."""

    id: int
    memory_id: int
    kind: ChangeKind


class Origin(NamedTuple):
    """The author of a note, if it is one person, and the session and the message that it comes from, if known."""

    author_id: int | None
    session_id: str
    seq: int | None = None


def add_memory(tx: Tx, *, audience_id: int, text: str, origin: Origin, replaces_id: int | None = None) -> int:
    """Add a note and return its id."""
    memory_id: int = tx.value(
        "memories.add",
        audience_id=audience_id,
        text=clean_text(text),
        session_id=origin.session_id,
        seq=origin.seq,
        author_id=origin.author_id,
        replaces_id=replaces_id,
        fingerprint=fingerprint(text),
    )
    return memory_id


def get_memory(tx: ReadTx, memory_id: int, *, person_id: int) -> Memory:
    """Return a note, forgotten or not, if the person belongs to its audience."""
    row = tx.one(Memory, "memories.find_visible", memory_id=memory_id, person_id=person_id)
    if row is None:
        raise NotFound(f"There is no note {memory_id} that you may see.")
    return row


def find_duplicate(tx: ReadTx, text: str, *, audience_id: int, except_id: int = 0) -> int | None:
    """Return the id of another note of the audience with the same text, or None. Forgotten notes do not count."""
    found: int | None = tx.value(
        "memories.find_duplicate", audience_id=audience_id, fingerprint=fingerprint(text), except_id=except_id
    )
    return found


def list_memories(tx: ReadTx, *, audience_id: int, limit: int) -> list[Memory]:
    """Return the notes of an audience that are not forgotten, newest first."""
    return tx.all(Memory, "memories.list_of_audience", audience_id=audience_id, limit=limit)


def set_forgotten(tx: Tx, memory_id: int, *, forgotten: bool) -> bool:
    """Forget a note, or restore a forgotten one. Return whether anything changed."""
    since_at = tx.now if forgotten else None
    return tx.run("memories.set_forgotten", memory_id=memory_id, since_at=since_at) == 1


def add_change(tx: Tx, *, audience_id: int, memory_id: int, kind: ChangeKind, person_id: int) -> None:
    """Record a change of a note, and the person."""
    tx.run(
        "memories.add_change", audience_id=audience_id, memory_id=memory_id, kind=kind, person_id=person_id
    )


def find_last_change(tx: ReadTx, audience_id: int) -> Change | None:
    """Return the last change of an audience's notes that was not undone, or None."""
    return tx.one(Change, "memories.find_last_change", audience_id=audience_id)


def set_undone(tx: Tx, change_id: int) -> None:
    """Mark a change as undone."""
    tx.run("memories.set_undone", change_id=change_id)


def forget_session(tx: Tx, session_id: str) -> None:
    """Keep the notes of a purged session, without the reference to it."""
    tx.run("memories.forget_session", session_id=session_id)
