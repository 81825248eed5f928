"""Detach schedules from a session that is deleted for good."""

from keryx.core.schedules import tables as schedules
from keryx.store.database import Tx


def purge(tx: Tx, session_id: str) -> None:
    """Remove the session from schedules and fires; these rows stay."""
    schedules.forget_session(tx, session_id)
