"""Connector leases: one poller per account, judged by the database's own clock."""

from typing import NamedTuple

from keryx.core.conversations.rules.source import ONE_SHOT_PREFIX
from keryx.core.turns.rules.lease import LEASE_TIME
from keryx.store.database import ReadTx, Tx


class HeldAccount(NamedTuple):
    """An account and who polls it."""

    platform: str
    account: str
    holder: str

    @property
    def is_one_shot(self) -> bool:
        """Whether it is there for one answer."""
        return self.platform == "local" and self.account.startswith(ONE_SHOT_PREFIX)

    @property
    def name(self) -> str:
        """What people call it."""
        return f"{self.platform} ({self.account})" if self.account else self.platform


def take(tx: Tx, *, platform: str, account: str, holder: str) -> int | None:
    """Take or keep an account for polling; return the epoch, or None while another gateway has it."""
    found: int | None = tx.value(
        "connector_leases.take", platform=platform, account=account, holder=holder, lease_time=LEASE_TIME
    )
    return found


def release(tx: Tx, *, platform: str, account: str, holder: str, epoch: int) -> None:
    """Let another gateway poll the account at once; a late holder changes nothing."""
    tx.run("connector_leases.release", platform=platform, account=account, holder=holder, epoch=epoch)


def is_held(tx: Tx, *, platform: str, account: str, holder: str, epoch: int) -> bool:
    """Say whether this gateway has the account, and keep others from taking it before this transaction ends."""
    held = tx.run("connector_leases.check", platform=platform, account=account, holder=holder, epoch=epoch)
    return held == 1


def free_holder(tx: Tx, holder: str) -> None:
    """End the time of every account a dead process held; epochs stay, so that its late writes are refused."""
    tx.run("connector_leases.free_of_holder", holder=holder)


def list_held(tx: ReadTx) -> list[HeldAccount]:
    """Return which accounts are polled, and by which gateway."""
    return tx.all(HeldAccount, "connector_leases.list_held")


def list_left(tx: ReadTx, *, limit: int) -> list[str]:
    """Return the accounts of passing places that nobody holds any more."""
    return tx.values("connector_leases.list_left", limit=limit)


def drop_left(tx: Tx, account: str) -> bool:
    """Forget the account of a passing place; False if another process did, or its holder came back."""
    return tx.run("connector_leases.drop_left", account=account) == 1
