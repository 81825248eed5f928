"""A session's last message, the reset by which it began, and the effects of its calls."""

from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.conversations.rules.session import SessionId
from keryx.core.turns.rules.inbox import Fate, InboxState
from keryx.core.values.turn_states import StepEffect
from keryx.store.database import ReadTx


class LastMessage(NamedTuple):
    """The last message of a session, and its fate."""

    id: int
    state: InboxState
    fate: Fate | None
    fate_note: str | None
    received_at: Micros


class LastReset(NamedTuple):
    """The session before the reset, and the time of the reset."""

    from_session_id: SessionId
    created_at: Micros


def find_last_message(tx: ReadTx, session_id: str) -> LastMessage | None:
    """Return the last message of a session, or None."""
    return tx.one(LastMessage, "session_history.find_last_message", session_id=session_id)


def find_last_reset(tx: ReadTx, session_id: str) -> LastReset | None:
    """Return the reset by which a session began, or None."""
    return tx.one(LastReset, "session_history.find_last_reset", session_id=session_id)


def list_effects(tx: ReadTx, *, session_id: str, branch_no: int, after_seq: int) -> list[StepEffect]:
    """Return the effects of the calls after a message of a branch, each once."""
    return tx.values(
        "session_history.list_effects", session_id=session_id, branch_no=branch_no, after_seq=after_seq
    )
