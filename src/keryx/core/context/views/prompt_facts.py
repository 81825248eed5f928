"""The facts about a conversation for the prompt and for compaction, and its notes."""

from collections.abc import Sequence
from typing import Final

from keryx.core.context.rules.cover import Cover
from keryx.core.context.rules.prompt import ContextFacts
from keryx.core.context.rules.recall import choose_notes, rank_notes
from keryx.core.context.tables import memories, pins
from keryx.core.context.tables.memories import Memory
from keryx.core.conversations.rules.message import Message
from keryx.core.conversations.rules.session_settings import decode_personality
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import sessions
from keryx.core.conversations.views.transcript import list_transcript
from keryx.core.deliveries.tables import home_channels
from keryx.store.database import ReadTx

SEARCHED: Final = 1_000
"""How many of the newest notes are searched."""
LOOKED_BACK: Final = 20
"""How many messages are searched for the last message of a person."""


def recall_memories(tx: ReadTx, audience_id: int, *, said: str) -> list[Memory]:
    """Return the notes of an audience for the prompt, oldest first, if ``said`` is the last message."""
    return choose_notes(memories.list_memories(tx, audience_id=audience_id, limit=SEARCHED), said)


def find_memories(tx: ReadTx, session_id: str, *, person_id: int, words: str, limit: int) -> list[Memory]:
    """Return the notes of the session's audience that contain some of the words, best first."""
    audience_id = sessions.get_visible(tx, session_id, person_id=person_id).audience_id
    return rank_notes(memories.list_memories(tx, audience_id=audience_id, limit=SEARCHED), words)[:limit]


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

    ``said`` is the text of a person's last message, by which notes are chosen; if None, it is read from the transcript.
    ``source`` is the source of the current message; by default, the source that opened the session.
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
    """Return the text of the last message of a person, or an empty text."""
    users = (each for each in reversed(messages) if isinstance(each, Message) and each.role == "user")
    return next((message.text for message in users), "")


def pinned_seqs(tx: ReadTx, session_id: str) -> frozenset[int]:
    """Return the numbers of the session's pinned messages, some perhaps on branches that are not shown."""
    return frozenset(pins.list_pins(tx, session_id))
