"""Addresses: when the last message arrived from them, and which of them are dead."""

from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.deliveries.rules.delivery import probe_at
from keryx.core.deliveries.rules.route import Address
from keryx.store.codec import clean_text
from keryx.store.database import ReadTx, Tx


class KnownAddress(NamedTuple):
    """A row of the table."""

    address: str
    platform: str
    account: str
    dead_since_at: Micros | None
    reason: str | None
    probes: int
    probe_at: Micros | None
    last_inbound_at: Micros | None


def record_inbound(tx: Tx, address: Address) -> None:
    """Record that a message arrived from the address now, so that the address is alive."""
    tx.run("addresses.record_inbound", address=str(address), **_surface(address))


def mark_dead(tx: Tx, address: Address, *, reason: str) -> None:
    """Mark an address as dead, and set the time of the next probe: later each time."""
    known = find_address(tx, address)
    tx.run(
        "addresses.mark_dead",
        address=str(address),
        reason=clean_text(reason),
        probe_at=probe_at(0 if known is None else known.probes, now=tx.now),
        **_surface(address),
    )


def mark_alive(tx: Tx, address: Address) -> None:
    """Mark an address as alive after a successful delivery."""
    tx.run("addresses.mark_alive", address=str(address))


def find_address(tx: ReadTx, address: Address) -> KnownAddress | None:
    """Return the row of an address, or None."""
    return tx.one(KnownAddress, "addresses.find", address=str(address))


def _surface(address: Address) -> dict[str, str]:
    return {"platform": address.platform, "account": address.account or ""}
