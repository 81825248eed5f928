"""The state of the index: its format and its position in the feed, the session cards, and the purged sessions.

A session card is the document that holds a session's title, name, tags and id; the index knows it by its number.
"""

from collections.abc import Collection
from typing import Final

from keryx.core.conversations.rules.event import START, Position
from keryx.core.search.rules.index_format import FORMAT
from keryx.store.codec import to_json
from keryx.store.database import ReadTx, Row, Tx

_CLEAR: Final = (
    "search_state.clear",
    "search_segments.clear",
    "search_segments.clear_chunks",
    "search_blocks.clear",
    "search_segments.clear_sources",
    "search_state.clear_cards",
    "search_state.clear_purges",
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


def ensure_card(tx: Tx, session_id: str) -> int:
    """Return the id of a session's card; adds one if the session has none."""
    row = tx.row("search_state.find_card", session_id=session_id)
    if row is not None:
        return int(row[0])
    card_id = take_card_id(tx)
    tx.run("search_state.add_card", card_id=card_id, session_id=session_id)
    return card_id


def find_sessions(tx: ReadTx, card_ids: Collection[int]) -> dict[int, str]:
    """Return the sessions of some cards."""
    return dict(tx.rows("search_state.find_card_sessions", ids=to_json(list(card_ids)))) if card_ids else {}


def drop_card(tx: Tx, session_id: str) -> None:
    """Delete the card of a purged session."""
    tx.run("search_state.drop_card", session_id=session_id)


def add_purges(tx: Tx) -> None:
    """Add every session that is in the index but no longer in the store."""
    tx.run("search_state.add_purges")


def list_purges(tx: ReadTx, *, limit: int) -> list[str]:
    """Return sessions whose words must leave the index."""
    return tx.values("search_state.list_purges", limit=limit)


def finish_purge(tx: Tx, session_id: str) -> None:
    """Record that no word of the session is left in the index."""
    tx.run("search_state.finish_purge", session_id=session_id)
