"""What became of everything that came in from a platform or was to be said there, and what is still to be done."""

from keryx.clock import Micros
from keryx.domain.route import Address
from keryx.store.database import ReadTx
from keryx.store.tables import addresses, inbox, outbox, turns
from keryx.store.tables.inbox import ItemFate
from keryx.store.tables.outbox import DeliveryFate
from keryx.store.tables.turns import EndedTurn

__all__ = [
    "DeliveryFate",
    "EndedTurn",
    "ItemFate",
    "count_unsettled",
    "list_deliveries",
    "list_ended",
    "list_fates",
    "next_probe_at",
]


def list_fates(tx: ReadTx, *, platform: str, after: int = 0, limit: int = 500) -> list[ItemFate]:
    """Return a page of what came in from a platform, in the order of its arrival, each with its fate so far."""
    return inbox.list_fates(tx, platform=platform, after=after, limit=limit)


def list_deliveries(tx: ReadTx, *, platform: str, after: int = 0, limit: int = 500) -> list[DeliveryFate]:
    """Return a page of what was to be said on a platform, in the order in which it was queued, as it stands now."""
    return outbox.list_fates(tx, platform=platform, after=after, limit=limit)


def list_ended(tx: ReadTx, *, after: int = 0) -> list[EndedTurn]:
    """Return the turns after one that are over, each with the surfaces that show its conversation now."""
    return turns.list_ended(tx, after=after)


def count_unsettled(tx: ReadTx, *, platform: str) -> int:
    """Count what came in from a platform and has no fate, and what is to be sent there and is not."""
    return inbox.count_unsettled(tx, platform=platform) + outbox.count_unsettled(tx, platform=platform)


def next_probe_at(tx: ReadTx, address: Address) -> Micros | None:
    """Return when an address that is known to be dead is tried again; None for one that is not."""
    known = addresses.find_address(tx, address)
    return None if known is None else known.probe_at
