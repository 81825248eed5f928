"""Tags: words that people put on sessions to find them again."""

from keryx.store.codec import clean_text
from keryx.store.database import ReadTx, Tx


def add_tag(tx: Tx, session_id: str, tag: str) -> bool:
    """Put a tag on a session; say whether that is new."""
    return tx.run("tags.add", session_id=session_id, tag=clean_text(tag)) == 1


def remove_tag(tx: Tx, session_id: str, tag: str) -> bool:
    """Take a tag off a session; say whether it was there."""
    return tx.run("tags.remove", session_id=session_id, tag=clean_text(tag)) == 1


def list_tags(tx: ReadTx, session_id: str) -> list[str]:
    """Return the tags of a session, in order."""
    # Sorted here, because the databases do not agree on the order of letters.
    return sorted(tag for (tag,) in tx.rows("tags.list_of_session", session_id=session_id))
