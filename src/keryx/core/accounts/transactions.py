"""Take and release bot accounts.

One gateway polls an account and sends through it: the holder of the account's connector lease.
"""

from keryx.core.accounts import tables as connector_leases
from keryx.core.accounts.tables import Connector as Connector
from keryx.store.database import Tx


def take_connector(tx: Tx, *, platform: str, account: str, holder: str) -> Connector | None:
    """Take or renew the lease of an account; return None if another gateway holds the lease."""
    return connector_leases.take(tx, platform=platform, account=account, holder=holder)


def release_connector(tx: Tx, connector: Connector) -> None:
    """End the lease, so that another gateway can take the account at once."""
    connector_leases.release(tx, connector)
