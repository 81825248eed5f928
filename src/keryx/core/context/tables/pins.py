"""Pinned messages: numbers of messages of a session that no summary may stand for."""

from keryx.store.database import ReadTx, Tx


def add_pin(tx: Tx, session_id: str, seq: int, *, person_id: int) -> bool:
    """Pin a message; say whether that is new."""
    return tx.run("pins.add", session_id=session_id, seq=seq, person_id=person_id) == 1


def remove_pin(tx: Tx, session_id: str, seq: int) -> bool:
    """Take a pin away; say whether it was there."""
    return tx.run("pins.remove", session_id=session_id, seq=seq) == 1


def list_pins(tx: ReadTx, session_id: str) -> list[int]:
    """Return the numbers of what is pinned in a session on any of its branches, oldest first."""
    return tx.values("pins.list_of_session", session_id=session_id)
