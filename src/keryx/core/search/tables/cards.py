"""Session cards: the number of the document that holds a session's title, name, tags and id."""

from collections.abc import Collection

from keryx.core.search.tables.index_state import take_card_id
from keryx.store.codec import to_json
from keryx.store.database import ReadTx, Tx


def ensure_card(tx: Tx, session_id: str) -> int:
    """Return the id of a session's card; adds one if the session has none."""
    row = tx.row("search_cards.find", session_id=session_id)
    if row is not None:
        return int(row[0])
    card_id = take_card_id(tx)
    tx.run("search_cards.add", card_id=card_id, session_id=session_id)
    return card_id


def find_sessions(tx: ReadTx, card_ids: Collection[int]) -> dict[int, str]:
    """Return the sessions of some cards."""
    return dict(tx.rows("search_cards.find_sessions", ids=to_json(list(card_ids)))) if card_ids else {}


def drop_card(tx: Tx, session_id: str) -> None:
    """Delete the card of a purged session."""
    tx.run("search_cards.drop", session_id=session_id)
