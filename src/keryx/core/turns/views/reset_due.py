"""Whether a session is to start over, and whether it is to be flushed before: judged by all facts that the store holds.

A message that is accepted, the watcher and the flush ask here, so they never disagree: what holds off the reset (a turn
or a message under way, a surface that took the session up, a process that pins it) holds off the flush.
"""

from keryx.clock import Micros
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.tables import session_keys, sessions
from keryx.core.processes import tables as processes
from keryx.core.turns.rules import reset
from keryx.core.turns.rules.reset import ResetPolicies, ResetPolicy, ResetReason
from keryx.core.turns.rules.turn import yields_to_others
from keryx.core.turns.tables import inbox, turns
from keryx.store.database import ReadTx

__all__ = ["flush_due", "reset_due"]


def reset_due(tx: ReadTx, session: sessions.Session, *, policy: ResetPolicy) -> ResetReason | None:
    """Return why the session must start over now, or None to go on with it."""
    said_at = session.last_active_at
    if session.state == "closed" or reset.reset_due(policy, last_active_at=said_at, now=tx.now) is None:
        return None  # the other facts can only put the reset off, so they need not be read
    if _is_held_off(tx, session.id):
        return None
    shown_since = [surface.since_at for surface in session_keys.list_keys(tx, session.id)]
    quiet_since = reset.counted_from(said_at, shown_since=shown_since)
    return reset.reset_due(policy, last_active_at=quiet_since, now=tx.now)


def flush_due(tx: ReadTx, session_id: SessionId, *, last_active_at: Micros, policies: ResetPolicies) -> bool:
    """Say whether a session with messages to flush is to be flushed now, because it starts over soon."""
    surfaces = session_keys.list_keys(tx, session_id)
    quiet_since = reset.counted_from(last_active_at, shown_since=[key.since_at for key in surfaces])
    shown_at = [key.source for key in surfaces]
    wanted = reset.flush_wanted(policies, shown_at, last_active_at=quiet_since, now=tx.now)
    return wanted and not _is_held_off(tx, session_id)


def _is_held_off(tx: ReadTx, session_id: str) -> bool:
    """Say whether something is under way in the session, or a process pins it."""
    live = turns.find_live_turn(tx, session_id)
    # What Keryx does by itself is no conversation under way: it goes on in the session that ends.
    is_busy = live is not None and not yields_to_others(live.purpose)
    return is_busy or inbox.count_open(tx, session_id) > 0 or processes.session_pinned(tx, session_id)
