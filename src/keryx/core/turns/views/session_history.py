"""What a session was asked last, and by which reset it began."""

from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.conversations.rules.session import SessionId
from keryx.core.turns.rules.inbox import Fate, InboxState
from keryx.store.database import ReadTx


class LastMessage(NamedTuple):
    """The last thing somebody said, and its fate."""

    id: int
    state: InboxState
    fate: Fate | None
    fate_note: str | None
    received_at: Micros


class LastReset(NamedTuple):
    """Out of which session this one began, and when."""

    from_session_id: SessionId
    created_at: Micros


def find_last_message(tx: ReadTx, session_id: str) -> LastMessage | None:
    """Return the last thing somebody said to a session, or None."""
    return tx.one(LastMessage, "session_history.find_last_message", session_id=session_id)


def find_last_reset(tx: ReadTx, session_id: str) -> LastReset | None:
    """Return the reset by which a session began, or None."""
    return tx.one(LastReset, "session_history.find_last_reset", session_id=session_id)
