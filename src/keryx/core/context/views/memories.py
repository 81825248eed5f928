"""What is remembered: for the agent's context, and for an agent that asks."""

from typing import Final

from keryx.core.context.rules.recall import choose_notes, rank_notes
from keryx.core.context.tables import memories
from keryx.core.context.tables.memories import Memory
from keryx.core.conversations.tables import sessions
from keryx.store.database import ReadTx

__all__ = ["Memory", "find_memories", "recall_memories"]

SEARCHED: Final = 1_000
"""How many of the newest notes are looked at."""


def recall_memories(tx: ReadTx, audience_id: int, *, said: str) -> list[Memory]:
    """Return what the agent is told without asking, oldest first, when ``said`` was said last to an audience."""
    return choose_notes(memories.list_memories(tx, audience_id=audience_id, limit=SEARCHED), said)


def find_memories(tx: ReadTx, session_id: str, *, person_id: int, words: str, limit: int) -> list[Memory]:
    """Return the notes of those who read a session that have some of the words, best first."""
    audience_id = sessions.get_visible(tx, session_id, person_id=person_id).audience_id
    return rank_notes(memories.list_memories(tx, audience_id=audience_id, limit=SEARCHED), words)[:limit]
