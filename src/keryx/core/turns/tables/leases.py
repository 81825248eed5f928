"""Leases: one writer per session, judged by the database's own clock.

A lease is in the row of its session, because PostgreSQL re-checks only the row it waited for: a condition
on another table would be judged by how things stood before the wait, and a late holder could slip in.
"""

from typing import NamedTuple

from keryx.core.conversations.rules.session import SessionId
from keryx.core.turns.rules.lease import LEASE_TIME, Lease
from keryx.errors import LeaseLost
from keryx.store.database import ReadTx, Tx


class HeldSession(NamedTuple):
    """A session and who runs its turn."""

    holder: str
    session_id: str


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
    found: str | None = tx.value("leases.find_live", session_id=session_id)
    return found


def lost(lease: Lease) -> LeaseLost:
    """The error a late holder gets."""
    return LeaseLost(
        f"Session {lease.session_id} is no longer held by {lease.holder} (epoch {lease.epoch}); nothing was written."
    )


def free_holder(tx: Tx, holder: str) -> None:
    """End the time of every lease a dead process held; epochs stay, so that its late writes are refused."""
    tx.run("leases.free_of_holder", holder=holder)


def list_held(tx: ReadTx) -> list[HeldSession]:
    """Return in which sessions turns run, and who runs them."""
    return tx.all(HeldSession, "leases.list_held")
