"""Leave a place that was there for one answer: nobody will read there again, so nothing may wait for it.

Its conversation can be gone on with by name or id. What is not answered yet is answered at the terminal.
"""

from typing import Final

from keryx.domain.route import Address
from keryx.domain.session import SessionId
from keryx.domain.session_key import ScopeSettings, key_for
from keryx.domain.source import LOCAL_CLI, PASSING, Source, passing_place
from keryx.store.database import Contended, Tx
from keryx.store.tables import feed, inbox, keys, leases, outbox, sessions, turns

GONE: Final = "whoever asked was gone"


def leave_places(tx: Tx, *, profile: str, limit: int) -> int:
    """Leave passing places that nobody holds any more, a batch at a time; return how many there were."""
    left = [account for account in leases.list_left(tx, limit=limit) if leases.drop_left(tx, account)]
    for account in left:
        _leave(tx, passing_place(account.removeprefix(PASSING)), profile=profile)
    return len(left)


def _leave(tx: Tx, place: Source, *, profile: str) -> None:
    key = key_for(place, ScopeSettings(), profile=profile)
    pointed = keys.find_key(tx, key)
    spoken_to = inbox.list_sessions_of(tx, place)
    # In the order of their ids, as everywhere, so that nobody waits for each other.
    for session_id in sorted({*spoken_to, *([] if pointed is None else [pointed.session_id])}):
        sessions.lock_session(tx, SessionId(session_id))
    if keys.find_key(tx, key) != pointed:
        raise Contended  # while we waited for the session, it started over
    for session_id in spoken_to:
        inbox.move(tx, session_id, source=place, to=LOCAL_CLI)
        turns.move(tx, session_id, origin=place, to=LOCAL_CLI)
    for number, told in outbox.end_unsent(tx, Address.of(place), error=GONE):
        if told is not None:
            feed.add_event(tx, told, "delivery", number)
    if pointed is None:
        return
    keys.remove_key(tx, key)
    if not keys.list_keys(tx, pointed.session_id) and sessions.close_session(
        tx, pointed.session_id, reason="done"
    ):
        feed.add_event(tx, pointed.session_id, "session.closed")
