"""Ask the agent to note what is worth keeping before a session expires, and let that never be in anybody's way.

The request stands at the session's last message and adds none: one state of a transcript is flushed at most once,
whoever asks, and a session whose flush failed is reset like any other. Whoever wants the session while it is flushed
takes it: all that a flush does is rows, so a late one is fenced off.
"""

from keryx.config import Settings
from keryx.domain.inbox import FLUSH_PLATFORM
from keryx.domain.reset import counted_from, flush_wanted
from keryx.domain.session import SessionId
from keryx.domain.turn import gives_way
from keryx.store.database import Tx
from keryx.store.tables import feed, inbox, keys, leases, session_changes, sessions, turns
from keryx.transactions.fail_turn import hand_back_turn, stop_turn

HOLDER = "flush"


def flush_session(tx: Tx, session_id: SessionId, *, settings: Settings) -> int | None:
    """Ask for a flush and return the item's id; None when the session does not expire soon, or needs none."""
    sessions.lock_session(tx, session_id)
    session = sessions.get_session(tx, session_id)
    surfaces = keys.list_keys(tx, session_id)
    if session.state != "open" or session.flushed_seq >= session.last_seq:
        return None
    quiet_since = counted_from(session.last_active_at, shown_since=[key.since_at for key in surfaces])
    shown_at = [key.source for key in surfaces]
    if not flush_wanted(settings.reset, shown_at, last_active_at=quiet_since, now=tx.now):
        return None
    if inbox.count_open(tx, session_id) or turns.find_live_turn(tx, session_id):
        return None  # what is being said is not quiet
    ref = f"flush:{session_id}:{session.last_seq}"
    known = inbox.find_by_ref(tx, platform=FLUSH_PLATFORM, account="", ref=ref)
    if known is not None:
        _let_go(tx, session_id, known.id, seq=session.last_seq)
        return None
    inbox_id = inbox.add_item(
        tx,
        session_id=session_id,
        kind="agent",
        source=session.source,
        platform=FLUSH_PLATFORM,
        ref=ref,
        parts=(),
        person_id=None,
        seq=session.last_seq,
    )
    feed.add_event(tx, session_id, "inbox", inbox_id)
    return inbox_id


def give_way(tx: Tx, session_id: SessionId) -> bool:
    """End the turn of Keryx's own that runs in a locked session, if one does, wherever; say whether there was one.

    A flush is over; a title is asked for again when it is quiet.
    """
    live = turns.find_live_turn(tx, session_id)
    if live is None or not gives_way(live.purpose):
        return False
    leases.break_lease(tx, session_id)
    lease = leases.take_lease(tx, session_id, holder=HOLDER)
    assert lease is not None, "nobody holds it, and it is locked"
    turns.take_over(tx, live.id, lease)
    if live.purpose == "title":
        hand_back_turn(tx, lease, turn_id=live.id)
    else:
        stop_turn(tx, lease, turn_id=live.id)
    return True


def _let_go(tx: Tx, session_id: SessionId, inbox_id: int, *, seq: int) -> None:
    """Note that a request which was cancelled was the only one for this state; one that waits is still to come."""
    item = inbox.find_item(tx, inbox_id)
    assert item is not None
    if item.fate is not None:
        session_changes.set_flushed_seq(tx, session_id, seq)
