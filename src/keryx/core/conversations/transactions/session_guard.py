"""Guards: refuse a change of a session while a turn runs or waits in it, and a write of a turn that lost its lease.

A turn that waits for an answer continues on the branch on which it began, so it blocks a change too. A guard only
refuses. The caller passes the function that ends a turn of Keryx's own.
"""

from collections.abc import Callable

from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.tables import sessions
from keryx.core.people.tables import people
from keryx.core.turns.rules.lease import TurnLease
from keryx.core.turns.tables import leases, turns
from keryx.errors import NotAllowed, SessionBusy
from keryx.store.database import Tx
from keryx.values import dataclass

GiveWay = Callable[[Tx, SessionId], bool]
"""End a turn of Keryx's own in a locked session, if one is live there. Return whether there was one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """The person who changes a session, and the function that ends a turn of Keryx's own for this person.

    ``holder`` is the holder of the session's lease if the running turn itself makes the change.
    """

    person_id: int
    give_way: GiveWay
    holder: str | None = None


def lock_idle(tx: Tx, session_id: str, *, actor: Actor) -> sessions.Session:
    """Lock a session that the actor may see and return it. Raise ``SessionBusy`` while it has a live turn."""
    sessions.lock_session(tx, session_id)
    session = sessions.get_visible(tx, session_id, person_id=actor.person_id)
    require_idle(tx, session_id, give_way=actor.give_way, holder=actor.holder)
    return session


def require_idle(tx: Tx, session_id: str, *, give_way: GiveWay, holder: str | None = None) -> None:
    """Raise ``SessionBusy`` while a locked session has a live turn of another holder."""
    live_holder = leases.find_live_holder(tx, session_id)
    if live_holder is not None and live_holder == holder:
        return
    busy = live_holder is not None or turns.find_live_turn(tx, session_id) is not None
    if busy and not give_way(tx, SessionId(session_id)):
        raise SessionBusy(
            f"A turn is running or waiting in session {session_id}. Let it end, or stop it with /stop, then try again."
        )


def require_owner(tx: Tx, session: sessions.Session, *, person_id: int) -> None:
    """Raise ``NotAllowed`` unless the person owns the session or the store."""
    if session.owner_id != person_id and people.get_person(tx, person_id).role != "owner":
        raise NotAllowed(f"Session {session.id} belongs to somebody else: only its owner may delete it.")


def require_turn_lease(tx: Tx, held: TurnLease) -> turns.Turn:
    """Return the running turn of this lease and lock its session. Raise ``LeaseLost`` if the lease is not valid."""
    leases.require_lease(tx, held.lease)
    turn = turns.get_turn(tx, held.turn_id)
    if (turn.session_id, turn.epoch, turn.state) != (held.session_id, held.lease.epoch, "running"):
        raise leases.lost(held.lease)
    return turn
