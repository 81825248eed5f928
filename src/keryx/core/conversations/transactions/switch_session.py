"""Which session a surface shows: ``/new``, ``/resume``, ``/attach`` and ``/detach`` point its key elsewhere.

A session closes when no key points to it any more. A surface only ever shows what was said to the same people, so
that nothing said in private is heard in a group, or the other way round.
"""

from dataclasses import replace
from typing import Literal

from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.session_key import SessionKey
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import feed, session_changes, session_keys, sessions
from keryx.core.conversations.transactions.open_session import NOTHING, handed_by, open_session
from keryx.core.people.rules.access import audience_of
from keryx.core.people.rules.person import Person
from keryx.core.people.tables import people
from keryx.errors import NotFound
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.values import dataclass

SwitchRefusal = Literal["audience", "here", "closed", "not_attached"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """A place where somebody speaks, and the key under which it finds its session."""

    key: SessionKey
    source: Source
    person: Person


@dataclass(frozen=True, slots=True, kw_only=True)
class Switched:
    """The surface shows this session now; ``closed`` is the one before it, if no surface is left to show it."""

    session_id: SessionId
    closed: SessionId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchRefused:
    """The surface shows what it showed.

    ``audience``: others would hear it than those it was said to. ``here``: it is what this surface shows.
    ``closed``: it is on no surface, so there is nothing to join; resume it.
    ``not_attached``: this is the session's only surface.
    """

    reason: SwitchRefusal


def start_new(tx: Tx, ids: Ids, surface: Surface) -> Switched:
    """Open a fresh session on a surface, in the same project, workspace and manner as the one before."""
    current = session_keys.find_key(tx, surface.key)
    handed = NOTHING
    if current is not None:
        session = sessions.get_session(tx, current.session_id)
        handed = replace(handed_by(session), display_name=session.display_name)
    session_id = open_session(tx, ids, source=surface.source, owner=surface.person, handed=handed)
    return _point(tx, surface, session_id, reason="new")


def resume(tx: Tx, surface: Surface, session_id: SessionId) -> Switched | SwitchRefused:
    """Go on with a session on a surface, opening it again if it was closed, and put away no longer.

    Raises ``NotFound`` for a session the person may not see, or that lies in the bin.
    """
    session = _get_switchable(tx, surface, session_id)
    if session.audience_id not in list_audiences(tx, surface):
        return SwitchRefused(reason="audience")
    if sessions.reopen_session(tx, session_id):
        feed.add_event(tx, session_id, "session.opened")
    if session_changes.set_archived(tx, session_id, archived=False):
        feed.add_event(tx, session_id, "session.changed")
    return _point(tx, surface, session_id, reason="switch")


def attach(tx: Tx, surface: Surface, session_id: SessionId) -> Switched | SwitchRefused:
    """Join a surface to a session that is held elsewhere, which gets a copy of every answer from then on."""
    session = _get_switchable(tx, surface, session_id)
    if session.audience_id not in list_audiences(tx, surface):
        return SwitchRefused(reason="audience")
    current = session_keys.find_key(tx, surface.key)
    if current is not None and current.session_id == session_id:
        return SwitchRefused(reason="here")
    if not session_keys.list_keys(tx, session_id):
        return SwitchRefused(reason="closed")
    return _point(tx, surface, session_id, reason="switch")


def detach(tx: Tx, ids: Ids, surface: Surface) -> Switched | SwitchRefused:
    """Leave a session that is held elsewhere too, for a fresh one."""
    current = session_keys.find_key(tx, surface.key)
    if current is None or len(session_keys.list_keys(tx, current.session_id)) < 2:
        return SwitchRefused(reason="not_attached")
    return start_new(tx, ids, surface)


def list_audiences(tx: Tx, surface: Surface) -> list[int]:
    """Return to whom a session was said that may be shown here: to the chat; in private, to the person alone."""
    if surface.source.chat_type == "dm":
        return people.list_private_audiences(tx, surface.person.id)
    return [people.ensure_audience(tx, audience_of(surface.source, surface.person.id))]


def _get_switchable(tx: Tx, surface: Surface, session_id: SessionId) -> sessions.Session:
    current = session_keys.find_key(tx, surface.key)
    # Locked in the order of their ids, so that two surfaces that change places wait for each other.
    for locked in sorted({session_id} if current is None else {session_id, current.session_id}):
        sessions.lock_session(tx, locked)
    session = sessions.get_visible(tx, session_id, person_id=surface.person.id)
    if session.deleted_at is not None:
        raise NotFound(f"Session {session_id} is in the bin; restore it first.")
    return session


def _point(tx: Tx, surface: Surface, session_id: SessionId, *, reason: str) -> Switched:
    current = session_keys.find_key(tx, surface.key)
    audience_id = sessions.get_session(tx, session_id).audience_id
    session_keys.point_key(
        tx, surface.key, session_id=session_id, source=surface.source, audience_id=audience_id
    )
    feed.add_event(tx, session_id, "session.changed")
    if current is None or current.session_id == session_id or session_keys.list_keys(tx, current.session_id):
        return Switched(session_id=session_id, closed=None)
    if not sessions.close_session(tx, current.session_id, reason=reason):
        return Switched(session_id=session_id, closed=None)
    feed.add_event(tx, current.session_id, "session.closed")
    return Switched(session_id=session_id, closed=SessionId(current.session_id))
