"""Counts and fates over all sessions."""

from typing import NamedTuple

from keryx.domain.inbox import Fate, InboxKind
from keryx.store.database import ReadTx


class Open(NamedTuple):
    """How much has not ended."""

    items: int
    turns: int
    deliveries: int


class Item(NamedTuple):
    """What became of something that came in; ``fate`` is None while it waits."""

    ref: str
    kind: InboxKind
    fate: Fate | None
    session_id: str


def list_fates(tx: ReadTx, *, platform: str) -> list[Item]:
    """Return what became of the items of a platform, in the order of their acceptance."""
    return [Item(*row) for row in tx.rows("accounting.list_fates", platform=platform)]


def count_open(tx: ReadTx) -> Open:
    """Return what has not ended."""
    return Open(*tx.rows("accounting.count_open")[0])
