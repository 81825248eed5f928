"""Delete the covers of a purged session. Its pins are deleted with the session's row."""

from keryx.core.context.tables import covers, memories
from keryx.store.database import Tx


def purge(tx: Tx, session_id: str) -> None:
    """Delete the covers of the session; keep its notes, without the reference to it."""
    memories.forget_session(tx, session_id)
    covers.drop_of_session(tx, session_id)
