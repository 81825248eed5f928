"""What was said to an audience lately, as short lists show it."""

from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.conversations.rules.session import SessionId, SessionState
from keryx.store.database import ReadTx


class ListedSession(NamedTuple):
    """A session as a list shows it."""

    id: SessionId
    title: str | None
    preview: str | None
    state: SessionState
    pinned_at: Micros | None
    last_active_at: Micros
    message_count: int

    @property
    def name(self) -> str:
        """What people know it by."""
        return self.title or self.preview or self.id


def list_sessions(tx: ReadTx, *, audience_id: int, limit: int) -> list[ListedSession]:
    """Return what was said to an audience lately, pinned first, then by last activity."""
    return tx.all(ListedSession, "recent_sessions.list_of_audience", audience_id=audience_id, limit=limit)
