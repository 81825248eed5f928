"""Let schedules outlive a session that is deleted for good."""

from keryx.core.schedules import tables as schedules
from keryx.store.database import Tx


def purge(tx: Tx, session_id: str) -> None:
    """Keep the records of schedules, without the session or what ran in it."""
    schedules.forget_session(tx, session_id)
