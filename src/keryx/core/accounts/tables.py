"""Connector leases: one gateway polls an account, decided by the database's own clock."""

from dataclasses import asdict
from typing import NamedTuple

from keryx.core.conversations.rules.source import ONE_SHOT_PREFIX
from keryx.core.turns.rules.lease import LEASE_TIME
from keryx.store.database import ReadTx, Tx
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    """The connector lease of one gateway: the right to poll an account and to send through it."""

    platform: str
    account: str
    holder: str
    epoch: int


class HeldAccount(NamedTuple):
    """An account and the gateway that polls it."""

    platform: str
    account: str
    holder: str

    @property
    def is_one_shot(self) -> bool:
        """Whether the account exists for a single answer."""
        return self.platform == "local" and self.account.startswith(ONE_SHOT_PREFIX)

    @property
    def name(self) -> str:
        """The name that people see."""
        return f"{self.platform} ({self.account})" if self.account else self.platform


def take(tx: Tx, *, platform: str, account: str, holder: str) -> Connector | None:
    """Take or renew the lease of an account and return it, or None if another gateway holds the lease."""
    return tx.one(
        Connector,
        "connector_leases.take",
        platform=platform,
        account=account,
        holder=holder,
        lease_time=LEASE_TIME,
    )


def release(tx: Tx, connector: Connector) -> None:
    """End a lease at once. Does nothing if the lease was lost."""
    tx.run("connector_leases.release", **asdict(connector))


def is_held(tx: Tx, connector: Connector) -> bool:
    """Return whether the gateway still holds the lease, and lock the lease until the transaction ends."""
    return tx.run("connector_leases.check", **asdict(connector)) == 1


def free_holder(tx: Tx, holder: str) -> None:
    """End all leases of a dead process. Their epochs stay, so that its late writes are refused."""
    tx.run("connector_leases.free_of_holder", holder=holder)


def list_held(tx: ReadTx) -> list[HeldAccount]:
    """Return the accounts that are polled now."""
    return tx.all(HeldAccount, "connector_leases.list_held")


def list_left(tx: ReadTx, *, limit: int) -> list[str]:
    """Return the accounts of one-shot sources whose lease has expired."""
    return tx.values("connector_leases.list_left", limit=limit)


def drop_left(tx: Tx, account: str) -> bool:
    """Delete the account of a one-shot source; return False if it is deleted already, or held again."""
    return tx.run("connector_leases.drop_left", account=account) == 1
