"""Merges in progress: the source segments of each target, and the new numbers of their documents."""

from array import array

from keryx.store.database import ReadTx, Tx


def add_source(tx: Tx, *, target_id: int, source_id: int, renumbering: "array[int]") -> None:
    """Record a source of a merge and the new numbers of its documents."""
    tx.run("search_merges.add", target_id=target_id, source_id=source_id, renumbering=renumbering.tobytes())


def list_sources(tx: ReadTx, target_id: int) -> list[tuple[int, "array[int]"]]:
    """Return the sources of a merge with the new numbers of their documents, oldest first."""
    found = []
    for source_id, renumbering in tx.rows("search_merges.list", target_id=target_id):
        numbers = array("H")
        numbers.frombytes(renumbering)
        found.append((source_id, numbers))
    return found


def drop_sources(tx: Tx, target_id: int) -> None:
    """Delete the sources of a finished merge."""
    tx.run("search_merges.drop", target_id=target_id)
