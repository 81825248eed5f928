"""Leases: one writer per session; the database's clock decides whether a lease has expired.

A lease is in its session's row, because PostgreSQL checks a condition again only on the row that it waited for. A
condition on another table would use values from before the wait, so a late holder could write.
"""

from typing import NamedTuple

from keryx.core.conversations.rules.session import SessionId
from keryx.core.turns.rules.lease import LEASE_TIME, Lease
from keryx.errors import LeaseLost
from keryx.store.database import ReadTx, Tx


class HeldSession(NamedTuple):
    """A session with a running turn, and the turn's holder."""

    holder: str
    session_id: str


def take_lease(tx: Tx, session_id: SessionId, *, holder: str) -> Lease | None:
    """Take the session with a new epoch; return None while another holder has it."""
    return tx.one(Lease, "leases.take", session_id=session_id, holder=holder, lease_time=LEASE_TIME)


def renew_lease(tx: Tx, lease: Lease) -> Lease:
    """Extend a lease and return it with its new time, or raise ``LeaseLost``."""
    renewed = tx.one(Lease, "leases.renew", lease_time=LEASE_TIME, **_key(lease))
    if renewed is None:
        raise lost(lease)
    return renewed


def release_lease(tx: Tx, lease: Lease) -> None:
    """Release a lease, or raise ``LeaseLost``."""
    if not tx.run("leases.release", **_key(lease)):
        raise lost(lease)
    # This statement wakes the turn loop if it returns a row. After most turns nothing waits.
    tx.row("inbox.find_next", session_id=lease.session_id)


def break_lease(tx: Tx, session_id: SessionId) -> None:
    """End the lease on a locked session, whoever holds it; only for turns whose every effect is in the database."""
    tx.run("leases.break", session_id=session_id)


def require_lease(tx: Tx, lease: Lease) -> None:
    """Raise ``LeaseLost`` unless the lease is valid; lock the session, so that it stays valid in this transaction."""
    if not tx.exists("leases.check", **_key(lease)):
        raise lost(lease)


def find_live_holder(tx: ReadTx, session_id: str) -> str | None:
    """Return the holder of the session's lease, or None."""
    found: str | None = tx.value("leases.find_live", session_id=session_id)
    return found


def lost(lease: Lease) -> LeaseLost:
    """Return the error for a late holder."""
    return LeaseLost(
        f"Session {lease.session_id} is no longer held by {lease.holder} (epoch {lease.epoch}); nothing was written."
    )


def free_holder(tx: Tx, holder: str) -> None:
    """End all leases of a dead process; the epochs stay, so its late writes are refused."""
    tx.run("leases.free_of_holder", holder=holder)


def list_held(tx: ReadTx) -> list[HeldSession]:
    """Return the sessions with a running turn, and the holders."""
    return tx.all(HeldSession, "leases.list_held")


def _key(lease: Lease) -> dict[str, str | int]:
    return {"session_id": lease.session_id, "holder": lease.holder, "epoch": lease.epoch}
