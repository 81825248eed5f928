"""Delete the deliveries of a purged session."""

from keryx.core.deliveries.tables import outbox
from keryx.errors import SessionBusy
from keryx.store.database import Tx


def require_purgeable(tx: Tx, session_id: str) -> None:
    """Raise ``SessionBusy`` while a message of the session is being sent."""
    if outbox.has_sending(tx, session_id):
        raise SessionBusy(f"A message of session {session_id} is being sent. Purge it when that is over.")


def purge(tx: Tx, session_id: str) -> None:
    """Delete the deliveries of the session."""
    outbox.drop_of_session(tx, session_id)
