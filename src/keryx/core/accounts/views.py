"""The bot accounts that are connected now."""

from keryx.core.accounts.tables import HeldAccount, list_held
from keryx.store.database import ReadTx

__all__ = ["HeldAccount", "list_held", "list_platforms"]


def list_platforms(tx: ReadTx) -> list[str]:
    """Return the names of the accounts that are connected now; of one-shot accounts only the platform."""
    named = (each.platform if each.is_one_shot else each.name for each in list_held(tx))
    return list(dict.fromkeys(named))
