"""Whether there is something to send or to recover. Loops ask before they write, because a look costs no commit."""

from keryx.core.accounts import tables as connector_leases
from keryx.core.deliveries.tables import outbox
from keryx.core.turns.tables import turns
from keryx.store.database import ReadTx

__all__ = ["is_due", "is_left_behind"]


def is_left_behind(tx: ReadTx) -> bool:
    """Say whether a crash left something to take up."""
    return bool(
        turns.list_orphans(tx, limit=1)
        or outbox.list_stuck(tx, limit=1)
        or connector_leases.list_left(tx, limit=1)
    )


def is_due(tx: ReadTx, *, platform: str, account: str) -> bool:
    """Say whether an account has something to send now."""
    return bool(outbox.list_due(tx, platform=platform, account=account, limit=1))
