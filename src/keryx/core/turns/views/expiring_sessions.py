"""When a session is reset, and when it is flushed before: the rules applied to what the store holds.

Both use the same facts, so they never disagree: a live turn, an open item, a surface that resumed the session or a
process that pins it postpones the reset and the flush alike.
"""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.tables import session_keys, sessions
from keryx.core.processes import tables as processes
from keryx.core.turns.rules import reset
from keryx.core.turns.rules.reset import FlushWindow, ResetPolicies, ResetPolicy, ResetReason, flush_window
from keryx.core.turns.rules.turn import yields_to_others
from keryx.core.turns.tables import inbox, turns
from keryx.store.database import ReadTx

FLUSHING_MAX = 8
"""The maximum of open flushes of all gateways: a night's flushes must not delay people's messages."""
PAGE = 100


class Unflushed(NamedTuple):
    """A session with messages to flush; the next page begins after it."""

    id: str
    quiet_since: Micros


def reset_due(tx: ReadTx, session: sessions.Session, *, policy: ResetPolicy) -> ResetReason | None:
    """Return the reason why the session must be reset now, or None if it continues."""
    active_at = session.last_active_at
    if session.state == "closed" or reset.reset_due(policy, last_active_at=active_at, now=tx.now) is None:
        return None  # the other facts can only postpone the reset, so they are not read
    if _is_postponed(tx, session.id):
        return None
    surfaces = session_keys.list_keys(tx, session.id)
    return reset.reset_due(policy, last_active_at=_quiet_since(active_at, surfaces), now=tx.now)


def flush_due(tx: ReadTx, session_id: SessionId, *, last_active_at: Micros, policies: ResetPolicies) -> bool:
    """Return whether to flush a session with messages to flush now, because its reset is near."""
    surfaces = session_keys.list_keys(tx, session_id)
    quiet_since = _quiet_since(last_active_at, surfaces)
    sources = [surface.source for surface in surfaces]
    is_due = reset.any_flush_due(policies, sources, last_active_at=quiet_since, now=tx.now)
    return is_due and not _is_postponed(tx, session_id)


def list_expiring(tx: ReadTx, policies: ResetPolicies) -> list[SessionId]:
    """Return the sessions to flush now, the first to expire first, and no more than ``FLUSHING_MAX`` allows.

    The cost depends on how many are due, not on how many are stored: each policy reads one range of an index.
    """
    windows = [window for policy in policies.all if (window := flush_window(policy, now=tx.now))]
    room = FLUSHING_MAX - inbox.count_flushing(tx) if windows else 0
    found = (session for window in windows for session in _in_window(tx, window, policies))
    # A session with several surfaces may be in the windows of several policies.
    return list(dict.fromkeys(islice(found, max(0, room))))


def _in_window(tx: ReadTx, window: FlushWindow, policies: ResetPolicies) -> Iterator[SessionId]:
    """Yield the sessions in a policy's window that are due; a session of another policy may not be due."""
    for statement in ("expiring_sessions.list_unflushed", "expiring_sessions.list_unflushed_again"):
        page = [Unflushed(id="", quiet_since=window.after + 1)]
        while page:
            last = page[-1]
            after = {"after_at": last.quiet_since, "after_id": last.id, "until_at": window.until}
            page = tx.all(Unflushed, statement, limit=PAGE, **after)
            for each in page:
                session_id = SessionId(each.id)
                if flush_due(tx, session_id, last_active_at=each.quiet_since, policies=policies):
                    yield session_id


def _quiet_since(last_active_at: Micros, surfaces: list[session_keys.KeyRecord]) -> Micros:
    """Return the start of a session's idle time: its last activity, or the later time when a surface resumed it.

    A person who resumes an expired session wants to continue it, but resuming is not activity.
    """
    return max([last_active_at, *(surface.since_at for surface in surfaces)])


def _is_postponed(tx: ReadTx, session_id: str) -> bool:
    """Return whether a live turn, an open item or a process postpones the reset."""
    live = turns.find_live_turn(tx, session_id)
    # Turns of Keryx itself do not count: they continue in the session that ends.
    is_busy = live is not None and not yields_to_others(live.purpose)
    return is_busy or inbox.count_open(tx, session_id) > 0 or processes.session_pinned(tx, session_id)
