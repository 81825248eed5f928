"""Point the key of a surface to another session: ``/new``, ``/resume``, ``/attach`` and ``/detach``.

A session closes when no key points to it. A surface shows only sessions of its own audience, so that a group never
reads a private conversation, nor the other way round.
"""

from dataclasses import replace
from typing import Literal

from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.session_key import SessionKey
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import feed, session_changes, session_keys, sessions
from keryx.core.conversations.transactions.open_session import DEFAULTS, inherited_settings, open_session
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
    """A source, the person who writes there, and the session key of the source."""

    key: SessionKey
    source: Source
    person: Person


@dataclass(frozen=True, slots=True, kw_only=True)
class Switched:
    """The surface shows this session now; ``closed`` is the previous session if no key points to it any more."""

    session_id: SessionId
    closed: SessionId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchRefused:
    """Nothing changed.

    ``audience``: the surface has another audience than the session. ``here``: the surface shows the session already.
    ``closed``: no surface shows the session, so it can only be resumed. ``not_attached``: no other surface shows the
    session.
    """

    reason: SwitchRefusal


def start_new(tx: Tx, ids: Ids, surface: Surface) -> Switched:
    """Open a new session on a surface, with the settings of the previous one."""
    current = session_keys.find_key(tx, surface.key)
    initial = DEFAULTS
    if current is not None:
        session = sessions.get_session(tx, current.session_id)
        initial = replace(inherited_settings(session), display_name=session.display_name)
    session_id = open_session(tx, ids, source=surface.source, owner=surface.person, initial=initial)
    return _point(tx, surface, session_id, reason="new")


def resume(tx: Tx, surface: Surface, session_id: SessionId) -> Switched | SwitchRefused:
    """Show a session on a surface. Open it if it is closed, and restore it from the archive.

    Raises ``NotFound`` if the person may not see the session, or if it is in the bin.
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
    """Show a session of another surface on this surface too, which then gets a copy of every answer."""
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
    """Leave a session that another surface shows too, and open a new one."""
    current = session_keys.find_key(tx, surface.key)
    if current is None or len(session_keys.list_keys(tx, current.session_id)) < 2:
        return SwitchRefused(reason="not_attached")
    return start_new(tx, ids, surface)


def list_audiences(tx: Tx, surface: Surface) -> list[int]:
    """Return the audiences whose sessions the surface may show: the chat's, or in private all of the person's own."""
    if surface.source.chat_type == "dm":
        return people.list_private_audiences(tx, surface.person.id)
    return [people.ensure_audience(tx, audience_of(surface.source, surface.person.id))]


def _get_switchable(tx: Tx, surface: Surface, session_id: SessionId) -> sessions.Session:
    current = session_keys.find_key(tx, surface.key)
    # Lock in the order of the ids, so that two surfaces that swap their sessions do not deadlock.
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
    if (
        current is None
        or current.session_id == session_id
        or session_keys.list_keys(tx, current.session_id)
        or not sessions.close_session(tx, current.session_id, reason=reason)
    ):
        return Switched(session_id=session_id, closed=None)
    feed.add_event(tx, current.session_id, "session.closed")
    return Switched(session_id=session_id, closed=SessionId(current.session_id))
