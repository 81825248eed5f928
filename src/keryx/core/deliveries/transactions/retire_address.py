"""Leave a place that was there for one answer: nobody will read there again, so nothing may wait for it.

Its conversation can be gone on with by name or id. What is not answered yet is answered at the terminal.
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

GONE: Final = "whoever asked was gone"


def retire_addresses(tx: Tx, *, settings: Settings, limit: int) -> int:
    """Leave passing places that nobody holds any more, a batch at a time; return how many there were."""
    left = [
        account
        for account in connector_leases.list_left(tx, limit=limit)
        if connector_leases.drop_left(tx, account)
    ]
    for account in left:
        _leave(tx, one_shot_source(account.removeprefix(ONE_SHOT_PREFIX)), settings=settings)
    return len(left)


def _leave(tx: Tx, place: Source, *, settings: Settings) -> None:
    key = resolve_key(place, settings=settings)
    pointed = session_keys.find_key(tx, key)
    spoken_to = inbox.list_sessions_of(tx, place)
    # In the order of their ids, as everywhere, so that nobody waits for each other.
    for session_id in sorted({*spoken_to, *([] if pointed is None else [pointed.session_id])}):
        sessions.lock_session(tx, SessionId(session_id))
    if session_keys.find_key(tx, key) != pointed:
        raise RaceLost  # while we waited for the session, it started over
    for session_id in spoken_to:
        inbox.move(tx, session_id, source=place, to=LOCAL_CLI)
        turns.move(tx, session_id, origin=place, to=LOCAL_CLI)
    for number, told in outbox.end_unsent(tx, Address.of(place), error=GONE):
        if told is not None:
            feed.add_event(tx, told, "delivery", number)
    if pointed is None:
        return
    session_keys.remove_key(tx, key)
    if not session_keys.list_keys(tx, pointed.session_id) and sessions.close_session(
        tx, pointed.session_id, reason="done"
    ):
        feed.add_event(tx, pointed.session_id, "session.closed")
