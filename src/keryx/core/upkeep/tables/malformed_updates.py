"""Updates of platforms that could not be read, kept as they came."""

from typing import NamedTuple

from keryx.clock import Micros
from keryx.store.codec import clean_text
from keryx.store.database import ReadTx, Tx


class MalformedUpdate(NamedTuple):
    """A row of the table."""

    id: int
    platform: str
    account: str
    ref: str
    raw: str
    reason: str
    received_at: Micros


def add_malformed(tx: Tx, *, platform: str, account: str, ref: str, raw: str, reason: str) -> bool:
    """Keep an update that could not be read; say whether it is new."""
    return (
        tx.run(
            "malformed_updates.add",
            platform=platform,
            account=account,
            ref=clean_text(ref),
            raw=clean_text(raw),
            reason=clean_text(reason),
        )
        == 1
    )


def list_newest(tx: ReadTx, *, limit: int) -> list[MalformedUpdate]:
    """Return the newest of them, newest first."""
    return tx.all(MalformedUpdate, "malformed_updates.list_newest", limit=limit)


def count(tx: ReadTx) -> int:
    """Return how many there are."""
    row = tx.row("malformed_updates.count")
    assert row is not None
    return int(row[0])
