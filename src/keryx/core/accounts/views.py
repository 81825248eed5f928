"""Which bot accounts are connected now."""

from keryx.core.accounts import tables as connector_leases
from keryx.core.accounts.tables import HeldAccount
from keryx.store.database import ReadTx

__all__ = ["HeldAccount", "list_held", "list_platforms"]


def list_held(tx: ReadTx) -> list[HeldAccount]:
    """Return which accounts are polled, and by which gateway."""
    return connector_leases.list_held(tx)


def list_platforms(tx: ReadTx) -> list[str]:
    """Return the accounts that are connected now, as people name them."""
    named = (each.platform if each.is_one_shot else each.name for each in connector_leases.list_held(tx))
    return list(dict.fromkeys(named))
