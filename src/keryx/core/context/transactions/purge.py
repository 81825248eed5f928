"""Delete the summaries of a session for good. Its pinned messages go with the session's own row."""

from keryx.core.context.tables import covers, memories
from keryx.store.database import Tx


def purge(tx: Tx, session_id: str) -> None:
    """Delete the session's summaries; what was remembered stays, without where it was said."""
    memories.forget_session(tx, session_id)
    covers.drop_of_session(tx, session_id)
