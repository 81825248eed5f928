"""Which sessions expire soon and have something to flush: asked before anything is written, and again by the writer.

What it costs depends on how many are due, never on how many are stored: each policy is one range of an index.
"""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.conversations.rules.session import SessionId
from keryx.core.turns.rules.reset import FlushWindow, ResetPolicies, flush_window
from keryx.core.turns.tables import inbox
from keryx.core.turns.views.reset_due import flush_due
from keryx.store.database import ReadTx

__all__ = ["list_expiring"]

FLUSHING_MAX = 8
"""Flushes under way at the same time, of all gateways: a night's many must not crowd out who speaks now."""
PAGE = 100


class Unflushed(NamedTuple):
    """A session with messages that memory has not been asked about; where the next page begins."""

    id: str
    quiet_since: Micros


def list_expiring(tx: ReadTx, policies: ResetPolicies) -> list[SessionId]:
    """Return the sessions to flush now, those that expire first at first, and no more than there is room for."""
    windows = [window for policy in policies.all if (window := flush_window(policy, now=tx.now))]
    room = FLUSHING_MAX - inbox.count_flushing(tx) if windows else 0
    wanted = (session for window in windows for session in _in_window(tx, window, policies))
    # A session that is shown on several surfaces may lie in the windows of several policies.
    return list(dict.fromkeys(islice(wanted, max(0, room))))


def _in_window(tx: ReadTx, window: FlushWindow, policies: ResetPolicies) -> Iterator[SessionId]:
    """Yield what expires by one policy; sessions that follow another, quiet since that time, are passed over."""
    for statement in ("expiring_sessions.list_unflushed", "expiring_sessions.list_unflushed_again"):
        page = [Unflushed(id="", quiet_since=window.after + 1)]
        while page:
            page = _next_page(tx, statement, after=page[-1], until_at=window.until)
            for each in page:
                session_id = SessionId(each.id)
                if flush_due(tx, session_id, last_active_at=each.quiet_since, policies=policies):
                    yield session_id


def _next_page(tx: ReadTx, statement: str, *, after: Unflushed, until_at: Micros) -> list[Unflushed]:
    return tx.all(
        Unflushed, statement, after_at=after.quiet_since, after_id=after.id, until_at=until_at, limit=PAGE
    )
