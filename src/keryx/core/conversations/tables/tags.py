"""The tags of sessions."""

from keryx.store.codec import clean_text
from keryx.store.database import ReadTx, Tx


def add_tag(tx: Tx, session_id: str, tag: str) -> bool:
    """Add a tag to a session; return False if the session has it."""
    return tx.run("tags.add", session_id=session_id, tag=clean_text(tag)) == 1


def remove_tag(tx: Tx, session_id: str, tag: str) -> bool:
    """Remove a tag from a session; return whether the session had it."""
    return tx.run("tags.remove", session_id=session_id, tag=clean_text(tag)) == 1


def list_tags(tx: ReadTx, session_id: str) -> list[str]:
    """Return the tags of a session, sorted."""
    # The databases sort letters in different orders.
    return sorted(tx.values("tags.list_of_session", session_id=session_id))
