"""Delete the turns of a session for good, with what came in for it."""

from keryx.core.turns.tables import inbox, turns
from keryx.store.database import Tx


def purge(tx: Tx, session_id: str) -> None:
    """Delete the session's turns, their calls and texts so far, and the inbox items."""
    turns.drop_steps_of_session(tx, session_id)
    inbox.drop_of_session(tx, session_id)
    turns.drop_of_session(tx, session_id)
