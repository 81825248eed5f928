"""Retire passing places: local addresses that existed for one answer (``keryx --print``) and have no reader any more.

The conversation stays reachable by name or id. Messages without an answer are answered at the terminal.
"""

from typing import Final

from keryx.config import Settings
from keryx.core.accounts import tables as connector_leases
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.source import LOCAL_CLI, ONE_SHOT_PREFIX, Source, one_shot_source
from keryx.core.conversations.tables import feed, session_keys, sessions
from keryx.core.conversations.views.current_session import resolve_key
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.tables import outbox
from keryx.core.turns.tables import inbox, turns
from keryx.store.database import RaceLost, Tx

GONE: Final = "the program that asked has ended"


def retire_addresses(tx: Tx, *, settings: Settings, limit: int) -> int:
    """Retire up to ``limit`` passing places whose connector lease has ended, and return their number."""
    left = [
        account
        for account in connector_leases.list_left(tx, limit=limit)
        if connector_leases.drop_left(tx, account)
    ]
    for account in left:
        _retire(tx, one_shot_source(account.removeprefix(ONE_SHOT_PREFIX)), settings=settings)
    return len(left)


def _retire(tx: Tx, place: Source, *, settings: Settings) -> None:
    key = resolve_key(place, settings=settings)
    pointed = session_keys.find_key(tx, key)
    spoken_to = inbox.list_sessions_of(tx, place)
    # Every transaction locks sessions in the order of their ids, so that no two wait for each other.
    for session_id in sorted({*spoken_to, *([] if pointed is None else [pointed.session_id])}):
        sessions.lock_session(tx, SessionId(session_id))
    if session_keys.find_key(tx, key) != pointed:
        raise RaceLost  # the key moved to another session while we waited for the lock
    for session_id in spoken_to:
        inbox.move(tx, session_id, source=place, to=LOCAL_CLI)
        turns.move(tx, session_id, origin=place, to=LOCAL_CLI)
    for delivery_id, delivered_for in outbox.end_unsent(tx, Address.of(place), error=GONE):
        if delivered_for is not None:
            feed.add_event(tx, delivered_for, "delivery", delivery_id)
    if pointed is None:
        return
    session_keys.remove_key(tx, key)
    if not session_keys.list_keys(tx, pointed.session_id) and sessions.close_session(
        tx, pointed.session_id, reason="done"
    ):
        feed.add_event(tx, pointed.session_id, "session.closed")
