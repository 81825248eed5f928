"""Memories: what is worth keeping beyond a session, for the audience that heard it and nobody else.

A row's text never changes: an edit is a new row that names the one it replaces. What was done is kept beside it.
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
    """What was done to a memory."""

    id: int
    memory_id: int
    kind: ChangeKind


class Origin(NamedTuple):
    """Who said something, if it was one person, and where: in a session, at a message of it, if that is known."""

    author_id: int | None
    session_id: str
    seq: int | None = None


def add_memory(tx: Tx, *, audience_id: int, text: str, origin: Origin, replaces_id: int | None = None) -> int:
    """Remember something that was said in a session; return its id."""
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
    """Return a memory of an audience the person belongs to, forgotten or not."""
    row = tx.one(Memory, "memories.find_visible", memory_id=memory_id, person_id=person_id)
    if row is None:
        raise NotFound(f"There is no note {memory_id} that you may see.")
    return row


def find_same(tx: ReadTx, text: str, *, audience_id: int, but_id: int = 0) -> int | None:
    """Return which kept memory of an audience, but for one, says the same as ``text``, or None."""
    row = tx.row("memories.find_same", audience_id=audience_id, fingerprint=fingerprint(text), but_id=but_id)
    return None if row is None else int(row[0])


def list_memories(tx: ReadTx, *, audience_id: int, limit: int) -> list[Memory]:
    """Return what is remembered for an audience, newest first."""
    return tx.all(Memory, "memories.list_of_audience", audience_id=audience_id, limit=limit)


def set_forgotten(tx: Tx, memory_id: int, *, forgotten: bool) -> bool:
    """Forget a memory or take it back; say whether anything changed."""
    since_at = tx.now if forgotten else None
    return tx.run("memories.set_forgotten", memory_id=memory_id, since_at=since_at) == 1


def add_change(tx: Tx, *, audience_id: int, memory_id: int, kind: ChangeKind, person_id: int) -> None:
    """Keep what was done to a memory, and by whom."""
    tx.run(
        "memories.add_change", audience_id=audience_id, memory_id=memory_id, kind=kind, person_id=person_id
    )


def find_last_change(tx: ReadTx, audience_id: int) -> Change | None:
    """Return the last change to what an audience remembers that is not taken back, or None."""
    return tx.one(Change, "memories.find_last_change", audience_id=audience_id)


def set_undone(tx: Tx, change_id: int) -> None:
    """Note that a change was taken back."""
    tx.run("memories.set_undone", change_id=change_id)


def forget_session(tx: Tx, session_id: str) -> None:
    """Let memories no longer name the session in which they were said; they stay."""
    tx.run("memories.forget_session", session_id=session_id)
