"""Keep an update that could not be read; only then may the platform forget it."""

from keryx.core.upkeep.tables import malformed_updates
from keryx.store.database import Tx


def keep_malformed(tx: Tx, *, platform: str, account: str, ref: str, raw: str, reason: str) -> bool:
    """Store what a platform delivered as it came, with why it was not understood; say whether it is new."""
    return malformed_updates.add_malformed(
        tx, platform=platform, account=account, ref=ref, raw=raw, reason=reason
    )
