"""What is remembered: for the agent's context, and for an agent that asks."""

from typing import Final

from keryx.domain.recall import rank, recalled
from keryx.store.database import ReadTx
from keryx.store.tables import memories, sessions
from keryx.store.tables.memories import Memory

__all__ = ["Memory", "find_memories", "recall_memories"]

SEARCHED: Final = 1_000
"""How many of the newest notes are looked at."""


def recall_memories(tx: ReadTx, audience_id: int, *, said: str) -> list[Memory]:
    """Return what the agent is told without asking, oldest first, when ``said`` was said last to an audience."""
    return recalled(memories.list_memories(tx, audience_id=audience_id, limit=SEARCHED), said)


def find_memories(tx: ReadTx, session_id: str, *, person_id: int, words: str, limit: int) -> list[Memory]:
    """Return the notes of those who read a session that have some of the words, best first."""
    audience_id = sessions.get_visible(tx, session_id, person_id=person_id).audience_id
    return rank(memories.list_memories(tx, audience_id=audience_id, limit=SEARCHED), words)[:limit]
