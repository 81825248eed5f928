"""Addresses: when somebody last spoke there, and which of them are dead."""

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


def note_inbound(tx: Tx, address: Address) -> None:
    """Note that somebody spoke there now, so that it is not dead."""
    tx.run("addresses.note_inbound", address=str(address), **_surface(address))


def note_dead(tx: Tx, address: Address, *, reason: str) -> None:
    """Note that nothing arrives there, and when to probe it again: later each time."""
    known = find_address(tx, address)
    tx.run(
        "addresses.note_dead",
        address=str(address),
        reason=clean_text(reason),
        probe_at=probe_at(0 if known is None else known.probes, now=tx.now),
        **_surface(address),
    )


def note_alive(tx: Tx, address: Address) -> bool:
    """Note that something arrived there; say whether it was thought dead."""
    return tx.run("addresses.note_alive", address=str(address)) == 1


def find_address(tx: ReadTx, address: Address) -> KnownAddress | None:
    """Return what is known of an address, or None."""
    return tx.one(KnownAddress, "addresses.find", address=str(address))


def _surface(address: Address) -> dict[str, str]:
    return {"platform": address.platform, "account": address.account or ""}
