"""What the agent is told about where it is, as facts; ``domain.prompt`` makes the text."""

from typing import Final

from keryx.domain.prompt import ContextFacts
from keryx.domain.settings import decode_personality
from keryx.store.database import ReadTx
from keryx.store.tables import homes, memories, sessions

__all__ = ["show_context"]

MEMORIES_MAX: Final = 20


def show_context(
    tx: ReadTx, session_id: str, *, person_id: int, platforms: frozenset[str] = frozenset()
) -> ContextFacts:
    """Return the facts for a session's next turn; ``platforms`` are those connected now."""
    session = sessions.get_visible(tx, session_id, person_id=person_id)
    channels = {
        platform: home.chat_name or home.address.chat_id for platform, home in homes.list_homes(tx).items()
    }
    remembered = memories.list_memories(tx, audience_id=session.audience_id, limit=MEMORIES_MAX)
    personality = None if session.personality is None else decode_personality(session.personality).text
    return ContextFacts(
        source=session.source,
        session_id=session.id,
        started_at=session.started_at,
        title=session.title,
        platforms=platforms,
        homes=channels,
        destinations=("origin", "local", *sorted(channels)),
        workspace=session.workspace,
        personality=personality,
        reset_line=session.reset_reason,
        # Oldest first: what is added later stands at the end, and the bytes before it stay the same.
        memories=tuple(memory.text for memory in reversed(remembered)),
    )
