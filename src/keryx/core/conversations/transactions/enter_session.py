"""Find the current session of a source: resolve its key, and start a new session if a reset is due.

A reset depends on the activity before the accepted message, and is never due while the session has a live turn or a
ready inbox item.
"""

from dataclasses import replace

from keryx.config import Settings
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.session_key import SessionKey
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import branches, feed, session_keys, sessions
from keryx.core.conversations.transactions.open_session import (
    InitialSettings,
    inherited_settings,
    open_session,
)
from keryx.core.conversations.views.current_session import find_current
from keryx.core.deliveries.transactions.queue_delivery import queue_reply
from keryx.core.people.rules.access import audience_of
from keryx.core.people.rules.person import Person
from keryx.core.people.tables import people
from keryx.core.turns.rules.reset import ResetNotice, ResetReason, reset_notice
from keryx.core.turns.views.expiring_sessions import reset_due
from keryx.ids import Ids
from keryx.store.database import RaceLost, Tx
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EnteredSession:
    """The session of a message."""

    session_id: SessionId
    key: SessionKey
    opened: bool
    reset: ResetReason | None


def enter_session(tx: Tx, source: Source, *, person: Person, settings: Settings, ids: Ids) -> EnteredSession:
    """Lock and return the current session of a source. Open a new one if there is none, or if a reset is due.

    After a reset, the person and the agent each get one notice.
    """
    audience_id = people.ensure_member(tx, audience_of(source, person.id), person_id=person.id)
    key, current = find_current(tx, source, person_id=person.id, audience_id=audience_id, settings=settings)
    if current is None:
        initial = InitialSettings(profile=settings.profile)
        session_id = open_session(tx, ids, source=source, owner=person, key=key, initial=initial)
        return EnteredSession(session_id=session_id, key=key, opened=True, reset=None)
    session_id = SessionId(current.session_id)
    sessions.lock_session(tx, session_id)
    pointed = session_keys.find_key(tx, key)
    if pointed is None or pointed.session_id != session_id:
        raise RaceLost  # The key changed while we waited for the lock.
    session = sessions.get_session(tx, session_id)
    policy = settings.reset.resolve(source.platform, source.chat_type)
    reason = reset_due(tx, session, policy=policy)
    if reason is not None or session.state == "closed":
        notice = None if reason is None else reset_notice(policy, reason)
        session_id = _replace(tx, session, ids=ids, notice=notice)
        if notice is not None:
            queue_reply(tx, source, notice.user, session_id=session_id, ids=ids)
        return EnteredSession(session_id=session_id, key=key, opened=True, reset=reason)
    if source.chat_name and sessions.set_display_name(tx, session_id, source.chat_name):
        feed.add_event(tx, session_id, "session.changed")
    return EnteredSession(session_id=session_id, key=key, opened=False, reset=None)


def _replace(tx: Tx, old: sessions.Session, *, ids: Ids, notice: ResetNotice | None) -> SessionId:
    """Close a session and open another one in its place, on all its surfaces; ``notice`` is set after a reset."""
    initial = replace(
        inherited_settings(old),
        audience_id=old.audience_id,
        display_name=old.display_name,
        reset_reason=None if notice is None else notice.agent,
    )
    owner = people.get_person(tx, old.owner_id)
    session_id = open_session(tx, ids, source=old.source, owner=owner, initial=initial)
    for surface in session_keys.list_keys(tx, old.id):
        session_keys.point_key(
            tx,
            SessionKey(surface.key),
            session_id=session_id,
            source=surface.source,
            audience_id=surface.audience_id,
        )
    if sessions.close_session(tx, old.id, reason="reset"):
        feed.add_event(tx, old.id, "session.closed")
    if notice is not None:
        branches.add_link(tx, kind="reset", from_session_id=old.id, to_session_id=session_id)
    return session_id
