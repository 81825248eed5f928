"""Request a flush: the agent saves notes to memory before a session expires.

Each state of a transcript is flushed at most once. A failed flush does not stop the reset. A flush gives way to every
other use of the session: all its effects are in the database, so a late holder can write nothing.
"""

from keryx.config import Settings
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.tables import session_changes, sessions
from keryx.core.turns.rules.turn import yields_to_others
from keryx.core.turns.tables import inbox, leases, turns
from keryx.core.turns.transactions.fail_turn import hand_back_turn, stop_turn
from keryx.core.turns.transactions.inbox_items import request_turn
from keryx.core.turns.views.expiring_sessions import flush_due
from keryx.store.database import Tx

HOLDER = "flush"


def flush_session(tx: Tx, session_id: SessionId, *, settings: Settings) -> int | None:
    """Request a flush and return the item's id; return None if none is due."""
    sessions.lock_session(tx, session_id)
    session = sessions.get_session(tx, session_id)
    if session.state != "open" or session.flushed_seq >= session.last_seq:
        return None
    if not flush_due(tx, session_id, last_active_at=session.last_active_at, policies=settings.reset):
        return None
    ref = f"flush:{session_id}:{session.last_seq}"
    known = inbox.find_internal(tx, ref)
    if known is not None:
        if known.fate is not None:
            # The only request for this state was cancelled. Do not look at the session again.
            session_changes.set_flushed_seq(tx, session_id, session.last_seq)
        return None
    return request_turn(tx, session, purpose="flush", ref=ref)


def give_way(tx: Tx, session_id: SessionId) -> bool:
    """End a turn of Keryx itself in a locked session; return whether there was one.

    A flush stops; a title request waits for the next turn.
    """
    live = turns.find_live_turn(tx, session_id)
    if live is None or not yields_to_others(live.purpose):
        return False
    leases.break_lease(tx, session_id)
    lease = leases.take_lease(tx, session_id, holder=HOLDER)
    assert lease is not None, "the session has no lease, and is locked"
    held = turns.take_over(tx, live.id, lease)
    if live.purpose == "title":
        hand_back_turn(tx, held)
    else:
        stop_turn(tx, held)
    return True
