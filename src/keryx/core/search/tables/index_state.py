"""The single row that says in which format the index is and how far it covers the feed."""

from typing import Final

from keryx.core.conversations.rules.event import START, Position
from keryx.core.search.rules.index_format import FORMAT
from keryx.store.database import ReadTx, Row, Tx

_CLEAR: Final = (
    "search_state.clear",
    "search_segments.clear",
    "search_docs.clear",
    "search_blocks.clear",
    "search_merges.clear",
    "search_cards.clear",
    "search_purges.clear",
)


def find_position(tx: ReadTx) -> Position | None:
    """Return the position up to which the index covers the feed; None for an index of another format."""
    row = tx.row("search_state.find")
    return START if row is None else _position(row)


def lock_position(tx: Tx) -> Position | None:
    """Return the same, and keep other indexers out until the transaction ends. Begins an index if there is none."""
    tx.run("search_state.begin", format=FORMAT)
    (row,) = tx.rows("search_state.lock")
    return _position(row)


def advance(tx: Tx, position: Position) -> None:
    """Record that the index covers the feed up to ``position``."""
    tx.run("search_state.advance", xid=position.xid, id=position.id)


def clear_index(tx: Tx) -> None:
    """Empty the index. It then has no format and covers nothing."""
    for statement in _CLEAR:
        tx.run(statement)


def take_segment_id(tx: Tx) -> int:
    """Return the id of a new segment."""
    ((segment_id,),) = tx.rows("search_state.take_segment")
    return int(segment_id)


def take_card_id(tx: Tx) -> int:
    """Return the id of a new session card."""
    ((card_id,),) = tx.rows("search_state.take_card")
    return int(card_id)


def _position(row: Row) -> Position | None:
    return Position(row[1], row[2]) if row[0] == FORMAT else None
