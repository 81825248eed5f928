"""What became of everything that came in from a platform, and what is still to be done about it."""

from keryx.store.database import ReadTx
from keryx.store.tables import inbox, outbox
from keryx.store.tables.inbox import ItemFate

__all__ = ["ItemFate", "count_unsettled", "list_fates"]


def list_fates(tx: ReadTx, *, platform: str, after: int = 0, limit: int = 500) -> list[ItemFate]:
    """Return a page of what came in from a platform, in the order of its arrival, each with its fate so far."""
    return inbox.list_fates(tx, platform=platform, after=after, limit=limit)


def count_unsettled(tx: ReadTx, *, platform: str) -> int:
    """Count what came in from a platform and has no fate, and what is to be sent there and is not."""
    return inbox.count_unsettled(tx, platform=platform) + outbox.count_unsettled(tx, platform=platform)
