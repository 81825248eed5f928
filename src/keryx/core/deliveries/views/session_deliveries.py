"""The latest deliveries of a session."""

from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.deliveries.rules.delivery import DeliveryState
from keryx.store.database import ReadTx


class LastDelivery(NamedTuple):
    """The last answer and its state."""

    id: int
    state: DeliveryState
    platform: str
    attempts: int
    error: str | None
    maybe_repeated_at: Micros | None
    created_at: Micros


def was_shown_at(tx: ReadTx, session_id: str, address: str) -> bool:
    """Return whether one of the session's last fifty deliveries went to an address."""
    return tx.exists("session_deliveries.find_shown_at", session_id=session_id, address=address)


def find_last_delivery(tx: ReadTx, session_id: str) -> LastDelivery | None:
    """Return the session's last answer, or None."""
    return tx.one(LastDelivery, "session_deliveries.find_last", session_id=session_id)
