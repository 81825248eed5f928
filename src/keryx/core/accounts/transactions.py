"""Take and release bot accounts.

One gateway polls an account and sends through it: the one that holds the account's connector lease.
"""

from keryx.core.accounts import tables as connector_leases
from keryx.store.database import Tx
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    """The right to poll an account and to send through it."""

    platform: str
    account: str
    holder: str
    epoch: int


def take_connector(tx: Tx, *, platform: str, account: str, holder: str) -> Connector | None:
    """Take an account, or keep it; None while another gateway has it."""
    epoch = connector_leases.take(tx, platform=platform, account=account, holder=holder)
    if epoch is None:
        return None
    return Connector(platform=platform, account=account, holder=holder, epoch=epoch)


def release_connector(tx: Tx, connector: Connector) -> None:
    """Let another gateway have the account at once."""
    connector_leases.release(
        tx,
        platform=connector.platform,
        account=connector.account,
        holder=connector.holder,
        epoch=connector.epoch,
    )


def holds_connector(tx: Tx, connector: Connector) -> bool:
    """Say whether a gateway still has the account."""
    return connector_leases.is_held(
        tx,
        platform=connector.platform,
        account=connector.account,
        holder=connector.holder,
        epoch=connector.epoch,
    )
