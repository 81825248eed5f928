"""Which sessions expire soon and have something to flush: asked before anything is written, and again by the writer.

What it costs depends on how many are due, never on how many are stored: each policy is one range of an index.
"""

from collections.abc import Iterator
from itertools import islice

from keryx.domain.reset import FlushWindow, ResetPolicies, counted_from, flush_wanted, flush_window
from keryx.domain.session import SessionId
from keryx.store.database import ReadTx
from keryx.store.tables import inbox, keys, sessions

__all__ = ["list_expiring"]

FLUSHING_MAX = 8
"""Flushes under way at the same time, of all gateways: a night's many must not crowd out who speaks now."""
PAGE = 100


def list_expiring(tx: ReadTx, policies: ResetPolicies) -> list[SessionId]:
    """Return the sessions to flush now, those that expire first at first, and no more than there is room for."""
    windows = [window for policy in policies.all if (window := flush_window(policy, now=tx.now))]
    room = FLUSHING_MAX - inbox.count_flushing(tx) if windows else 0
    wanted = (session for window in windows for session in _in_window(tx, window, policies))
    # A session that is shown on several surfaces may lie in the windows of several policies.
    return list(dict.fromkeys(islice(wanted, max(0, room))))


def _in_window(tx: ReadTx, window: FlushWindow, policies: ResetPolicies) -> Iterator[SessionId]:
    """Yield what expires by one policy; sessions that follow another, quiet since that time, are passed over."""
    for list_page in (sessions.list_unflushed, sessions.list_unflushed_again):
        page = [sessions.Unflushed(id="", quiet_since=window.after + 1)]
        while page:
            page = list_page(tx, after=page[-1], until_at=window.until, limit=PAGE)
            yield from (SessionId(each.id) for each in page if _is_wanted(tx, each, policies))


def _is_wanted(tx: ReadTx, session: sessions.Unflushed, policies: ResetPolicies) -> bool:
    surfaces = keys.list_keys(tx, session.id)
    return flush_wanted(
        policies,
        [key.source for key in surfaces],
        last_active_at=counted_from(session.quiet_since, shown_since=[key.since_at for key in surfaces]),
        now=tx.now,
    )
