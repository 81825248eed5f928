"""Pinned messages: the messages of a session that no summary may cover."""

from keryx.store.database import ReadTx, Tx


def add_pin(tx: Tx, session_id: str, seq: int, *, person_id: int) -> bool:
    """Pin a message. Return False if it is pinned already."""
    return tx.run("pins.add", session_id=session_id, seq=seq, person_id=person_id) == 1


def remove_pin(tx: Tx, session_id: str, seq: int) -> bool:
    """Remove a pin. Return False if there is none."""
    return tx.run("pins.remove", session_id=session_id, seq=seq) == 1


def list_pins(tx: ReadTx, session_id: str) -> list[int]:
    """Return the numbers of the messages pinned in a session, on any of its branches, oldest first."""
    return tx.values("pins.list_of_session", session_id=session_id)
