"""Delete the approvals of a purged session. Its approval rules are deleted with the session's row."""

from keryx.core.approvals import tables as approvals
from keryx.store.database import Tx


def purge(tx: Tx, session_id: str) -> None:
    """Delete the questions of the session's turns."""
    approvals.drop_of_session(tx, session_id)
