"""Leases: one writer per session, one poller per account, judged by the database's own clock.

A session's lease lies in the session's own row, because PostgreSQL re-checks only the row it waited for: a condition
on another table would be judged by how things stood before the wait, and a late holder could slip in.
"""

from keryx.domain.lease import LEASE_TIME, Lease
from keryx.domain.session import SessionId
from keryx.errors import LeaseLost
from keryx.store.database import ReadTx, Tx


def take_lease(tx: Tx, session_id: SessionId, *, holder: str) -> Lease | None:
    """Take the session with a new epoch, or return None while somebody else holds it."""
    row = tx.row("leases.take", session_id=session_id, holder=holder, lease_time=LEASE_TIME)
    if row is None:
        return None
    return Lease(session_id=session_id, holder=holder, epoch=row[0], expires_at=row[1])


def renew_lease(tx: Tx, lease: Lease) -> Lease:
    """Return the lease with its new time, or raise ``LeaseLost``."""
    row = tx.row(
        "leases.renew",
        session_id=lease.session_id,
        holder=lease.holder,
        epoch=lease.epoch,
        lease_time=LEASE_TIME,
    )
    if row is None:
        raise lost(lease)
    return Lease(session_id=lease.session_id, holder=lease.holder, epoch=lease.epoch, expires_at=row[0])


def release_lease(tx: Tx, lease: Lease) -> None:
    """Let the next holder in, or raise ``LeaseLost``."""
    released = tx.run("leases.release", session_id=lease.session_id, holder=lease.holder, epoch=lease.epoch)
    if not released:
        raise lost(lease)
    # The loop is woken by this only if it finds something: most conversations wait for the person.
    tx.row("inbox.find_next", session_id=lease.session_id)


def break_lease(tx: Tx, session_id: SessionId) -> None:
    """Take a locked session from whoever holds it; only for a turn that does nothing but write rows."""
    tx.run("leases.break", session_id=session_id)


def require_lease(tx: Tx, lease: Lease) -> None:
    """Raise ``LeaseLost`` unless the session is still held; nobody else can take it before this transaction ends."""
    row = tx.row("leases.check", session_id=lease.session_id, holder=lease.holder, epoch=lease.epoch)
    if row is None:
        raise lost(lease)


def find_live_holder(tx: ReadTx, session_id: str) -> str | None:
    """Return who holds the session now, or None."""
    row = tx.row("leases.find_live", session_id=session_id)
    return None if row is None else row[0]


def lost(lease: Lease) -> LeaseLost:
    """The error a late holder gets."""
    return LeaseLost(
        f"Session {lease.session_id} is no longer held by {lease.holder} (epoch {lease.epoch}); nothing was written."
    )


def take_connector(tx: Tx, *, platform: str, account: str, holder: str) -> int | None:
    """Take or keep an account for polling; return the epoch, or None while another gateway has it."""
    row = tx.row(
        "leases.take_connector", platform=platform, account=account, holder=holder, lease_time=LEASE_TIME
    )
    return None if row is None else row[0]


def release_connector(tx: Tx, *, platform: str, account: str, holder: str, epoch: int) -> None:
    """Let another gateway poll the account at once; a late holder changes nothing."""
    tx.run("leases.release_connector", platform=platform, account=account, holder=holder, epoch=epoch)


def holds_connector(tx: Tx, *, platform: str, account: str, holder: str, epoch: int) -> bool:
    """Say whether this gateway has the account, and keep anybody else from taking it before this transaction ends."""
    return (
        tx.run("leases.holds_connector", platform=platform, account=account, holder=holder, epoch=epoch) == 1
    )


def free_holder(tx: Tx, holder: str) -> None:
    """End the time of everything a dead process held; epochs stay, so that a late word of it is still refused."""
    tx.run("leases.free_sessions", holder=holder)
    tx.run("leases.free_connectors", holder=holder)


def list_left(tx: ReadTx, *, limit: int) -> list[str]:
    """Return the accounts of passing places that nobody holds any more."""
    return [account for (account,) in tx.rows("leases.list_left", limit=limit)]


def drop_left(tx: Tx, account: str) -> bool:
    """Forget the account of a passing place; False when somebody else did, or its holder came back."""
    return tx.run("leases.drop_left", account=account) == 1
