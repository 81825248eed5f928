"""The chats in which people talk to the agent."""

from keryx.core.conversations.rules.source import Source
from keryx.store.codec import source_from_json
from keryx.store.database import ReadTx


def list_chats(tx: ReadTx, *, person_id: int | None = None) -> list[Source]:
    """Return all chats, oldest first; with ``person_id``, only the direct messages of this person."""
    return [source_from_json(source) for source in tx.values("chats.list", person_id=person_id)]
