"""What is pinned in a session, as those who make room for it need to know."""

from keryx.core.context.tables import pins
from keryx.store.database import ReadTx

__all__ = ["pinned_seqs"]


def pinned_seqs(tx: ReadTx, session_id: str) -> frozenset[int]:
    """Return the numbers of the session's pinned messages; some may lie on branches that are not shown."""
    return frozenset(pins.list_pins(tx, session_id))
