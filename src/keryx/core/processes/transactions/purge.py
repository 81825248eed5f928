"""Delete the processes of a session for good."""

from keryx.core.processes import tables as processes
from keryx.errors import SessionBusy
from keryx.store.database import Tx


def require_purgeable(tx: Tx, session_id: str) -> None:
    """Raise ``SessionBusy`` while a process of the session runs."""
    if processes.has_running(tx, session_id):
        raise SessionBusy(f"A process of session {session_id} runs. Purge it when that is over.")


def purge(tx: Tx, session_id: str) -> None:
    """Delete the session's processes, all of which have ended."""
    processes.drop_of_session(tx, session_id)
