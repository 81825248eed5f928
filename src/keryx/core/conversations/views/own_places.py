"""The chats that one person alone reads."""

from keryx.core.conversations.rules.source import Source
from keryx.store.codec import source_from_json
from keryx.store.database import ReadTx


def list_own_places(tx: ReadTx, person_id: int) -> list[Source]:
    """Return the chats that only this person reads, oldest first."""
    rows = tx.rows("own_places.list", person_id=person_id)
    return [source_from_json(source) for (source,) in rows]
