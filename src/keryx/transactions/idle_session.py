"""Take a session to change its shape, which nobody may do under a running turn.

A turn that waits for a person's answer counts too: it goes on where it stopped, on the branch it began on. A flush of
memory does not: it gives way.
"""

from keryx.domain.session import SessionId
from keryx.errors import NotAllowed, SessionBusy
from keryx.store.database import Tx
from keryx.store.tables import leases, people, sessions, turns
from keryx.transactions.flush_session import give_way


def lock_idle(
    tx: Tx, session_id: str, *, person_id: int, holder: str | None = None
) -> sessions.SessionRecord:
    """Lock a session this person may see and return it; raises ``SessionBusy`` while a turn lives in it.

    ``holder`` is who asks on behalf of the turn that runs, if that is so: its own lease is not in its way.
    """
    sessions.lock_session(tx, session_id)
    session = sessions.get_visible(tx, session_id, person_id=person_id)
    require_idle(tx, session_id, holder=holder)
    return session


def require_idle(tx: Tx, session_id: str, *, holder: str | None = None) -> None:
    """Raise ``SessionBusy`` while a turn of anybody but ``holder`` lives in a locked session."""
    live_holder = leases.find_live_holder(tx, session_id)
    if live_holder is not None and live_holder == holder:
        return
    busy = live_holder is not None or turns.find_live_turn(tx, session_id) is not None
    if busy and not give_way(tx, SessionId(session_id)):
        raise SessionBusy(
            f"A turn is running or waiting in session {session_id}. Let it end, or stop it with /stop, then try again."
        )


def require_owner(tx: Tx, session: sessions.SessionRecord, *, person_id: int) -> None:
    """Raise ``NotAllowed`` unless the session, or everything, belongs to this person."""
    if session.owner_id != person_id and people.get_person(tx, person_id).role != "owner":
        raise NotAllowed(f"Session {session.id} belongs to somebody else: only its owner may delete it.")
