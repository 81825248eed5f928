"""What the agent is told about where it is, as facts; ``context.rules.prompt`` makes the text."""

from collections.abc import Sequence

from keryx.core.context.rules.cover import Cover
from keryx.core.context.rules.prompt import ContextFacts
from keryx.core.context.views.memories import recall_memories
from keryx.core.conversations.rules.message import Message
from keryx.core.conversations.rules.session_settings import decode_personality
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import sessions
from keryx.core.conversations.views.transcript import list_transcript
from keryx.core.deliveries.tables import home_channels
from keryx.store.database import ReadTx

__all__ = ["show_context"]

LOOKED_BACK = 20
"""How many messages are looked through for what a person said last."""


def show_context(
    tx: ReadTx,
    session_id: str,
    *,
    person_id: int,
    platforms: frozenset[str] = frozenset(),
    said: str | None = None,
    source: Source | None = None,
) -> ContextFacts:
    """Return the facts for a session's next turn; ``platforms`` are those connected now.

    ``said`` is what a person said last, by which notes are recalled; where it is None, it is looked up. ``source`` is
    who speaks now, and where; without one, it is where the session was opened.
    """
    session = sessions.get_visible(tx, session_id, person_id=person_id)
    channels = {
        platform: home.chat_name or home.address.chat_id
        for platform, home in home_channels.list_homes(tx).items()
    }
    if said is None:
        said = last_said(list_transcript(tx, session_id, person_id=person_id, last=LOOKED_BACK))
    personality = None if session.personality is None else decode_personality(session.personality).text
    return ContextFacts(
        source=session.source if source is None else source,
        session_id=session.id,
        started_at=session.started_at,
        title=session.title,
        platforms=platforms,
        homes=channels,
        destinations=("origin", "local", *sorted(channels)),
        workspace=session.workspace,
        personality=personality,
        reset_line=session.reset_reason,
        memories=tuple(note.text for note in recall_memories(tx, session.audience_id, said=said)),
    )


def last_said(messages: Sequence[Message | Cover]) -> str:
    """Return what a person said last, or nothing."""
    users = (each for each in reversed(messages) if isinstance(each, Message) and each.role == "user")
    return next((message.text for message in users), "")
