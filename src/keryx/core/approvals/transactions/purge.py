"""Delete the approvals of a session for good. Its approval rules go with the session's own row."""

from keryx.core.approvals.tables import approvals
from keryx.store.database import Tx


def purge(tx: Tx, session_id: str) -> None:
    """Delete the questions that the session's turns asked."""
    approvals.drop_of_session(tx, session_id)
