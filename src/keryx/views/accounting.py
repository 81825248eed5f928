"""What became of everything that came in, and what is still under way: the books that a platform's are held against."""

from keryx.store.database import ReadTx
from keryx.store.tables import accounting
from keryx.store.tables.accounting import Item, Open

__all__ = ["Item", "Open", "count_open", "list_fates"]


def list_fates(tx: ReadTx, *, platform: str) -> list[Item]:
    """Return what became of everything that a platform brought, in the order of its acceptance."""
    return accounting.list_fates(tx, platform=platform)


def count_open(tx: ReadTx) -> Open:
    """Return how much has not ended: items without a fate, turns that run or wait, deliveries on their way."""
    return accounting.count_open(tx)
