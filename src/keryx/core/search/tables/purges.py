"""Purged sessions whose words must still leave the index."""

from keryx.store.database import ReadTx, Tx


def add_purges(tx: Tx) -> None:
    """Add every session that is in the index but no longer in the store."""
    tx.run("search_purges.add")


def list_purges(tx: ReadTx, *, limit: int) -> list[str]:
    """Return sessions whose words must leave the index."""
    return tx.values("search_purges.list", limit=limit)


def finish_purge(tx: Tx, session_id: str) -> None:
    """Record that no word of the session is left in the index."""
    tx.run("search_purges.finish", session_id=session_id)
