"""Store an update that could not be parsed. Only then may it be acknowledged to the platform."""

from keryx.core.upkeep import tables
from keryx.store.database import Tx


def keep_malformed(tx: Tx, *, platform: str, account: str, ref: str, raw: str, reason: str) -> bool:
    """Store a platform's update as it came, with the reason why it could not be parsed; return whether it is new."""
    return tables.add_malformed(tx, platform=platform, account=account, ref=ref, raw=raw, reason=reason)
