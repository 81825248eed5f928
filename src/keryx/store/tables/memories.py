"""Memories: what is worth keeping beyond a session, for the audience that heard it and nobody else."""

from typing import NamedTuple

from keryx.clock import Micros
from keryx.errors import NotFound
from keryx.store.codec import clean_text
from keryx.store.database import ReadTx, Tx


class Memory(NamedTuple):
    """One row, in the order of its columns."""

    id: int
    audience_id: int
    text: str
    session_id: str | None
    seq: int | None
    created_at: Micros
    forgotten_at: Micros | None


def add_memory(tx: Tx, *, audience_id: int, text: str, session_id: str, seq: int | None) -> int:
    """Remember something that was said in a session; return its id."""
    row = tx.row(
        "memories.add", audience_id=audience_id, text=clean_text(text), session_id=session_id, seq=seq
    )
    assert row is not None
    memory_id: int = row[0]
    return memory_id


def get_memory(tx: ReadTx, memory_id: int, *, person_id: int) -> Memory:
    """Return a memory of an audience the person belongs to, forgotten or not."""
    row = tx.row("memories.find_visible", memory_id=memory_id, person_id=person_id)
    if row is None:
        raise NotFound(f"There is no memory {memory_id} that you may see.")
    return Memory._make(row)


def list_memories(tx: ReadTx, *, audience_id: int, limit: int) -> list[Memory]:
    """Return what is remembered for an audience, newest first."""
    rows = tx.rows("memories.list_of_audience", audience_id=audience_id, limit=limit)
    return [Memory._make(row) for row in rows]


def set_forgotten(tx: Tx, memory_id: int, *, forgotten: bool) -> bool:
    """Forget a memory or take it back; say whether anything changed."""
    since_at = tx.now if forgotten else None
    return tx.run("memories.set_forgotten", memory_id=memory_id, since_at=since_at) == 1
