"""Ask the agent to note what is worth keeping before a session expires, and let that never be in anybody's way.

The request stands at the session's last message and adds none: one state of a transcript is flushed at most once,
whoever asks, and a session whose flush failed is reset like any other. Whoever wants the session while it is flushed
takes it: all that a flush does is rows, so a late one is fenced off.
"""

from keryx.config import Settings
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.tables import session_changes, sessions
from keryx.core.turns.rules.lease import TurnLease
from keryx.core.turns.rules.turn import yields_to_others
from keryx.core.turns.tables import inbox, leases, turns
from keryx.core.turns.transactions.fail_turn import hand_back_turn, stop_turn
from keryx.core.turns.transactions.request_turn import request_turn
from keryx.core.turns.views.reset_due import flush_due
from keryx.store.database import Tx

HOLDER = "flush"


def flush_session(tx: Tx, session_id: SessionId, *, settings: Settings) -> int | None:
    """Ask for a flush and return the item's id; None when the session does not expire soon, or needs none."""
    sessions.lock_session(tx, session_id)
    session = sessions.get_session(tx, session_id)
    if session.state != "open" or session.flushed_seq >= session.last_seq:
        return None
    if not flush_due(tx, session_id, last_active_at=session.last_active_at, policies=settings.reset):
        return None
    ref = f"flush:{session_id}:{session.last_seq}"
    known = inbox.find_unsent(tx, ref)
    if known is not None:
        _let_go(tx, session_id, known.id, seq=session.last_seq)
        return None
    return request_turn(tx, session, purpose="flush", ref=ref)


def give_way(tx: Tx, session_id: SessionId) -> bool:
    """End the turn of Keryx's own that runs in a locked session, if one does, wherever; say whether there was one.

    A flush is over; a title is asked for again when it is quiet.
    """
    live = turns.find_live_turn(tx, session_id)
    if live is None or not yields_to_others(live.purpose):
        return False
    leases.break_lease(tx, session_id)
    lease = leases.take_lease(tx, session_id, holder=HOLDER)
    assert lease is not None, "nobody holds it, and it is locked"
    turns.take_over(tx, live.id, lease)
    held = TurnLease(lease=lease, turn_id=live.id)
    if live.purpose == "title":
        hand_back_turn(tx, held)
    else:
        stop_turn(tx, held)
    return True


def _let_go(tx: Tx, session_id: SessionId, inbox_id: int, *, seq: int) -> None:
    """Note that a request which was cancelled was the only one for this state; one that waits is still to come."""
    item = inbox.find_item(tx, inbox_id)
    assert item is not None
    if item.fate is not None:
        session_changes.set_flushed_seq(tx, session_id, seq)
