"""Delete the turns and inbox items of a session for good."""

from keryx.core.turns.tables import inbox, turns
from keryx.store.database import Tx


def purge(tx: Tx, session_id: str) -> None:
    """Delete the session's turns, with their calls and texts so far, and its inbox items."""
    inbox.drop_of_session(tx, session_id)
    turns.drop_of_session(tx, session_id)
