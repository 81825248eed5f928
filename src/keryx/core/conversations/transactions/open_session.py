"""Open a session: a conversation with an owner and an audience that never change.

Every other way a session comes to be (a first message, a reset, ``/new``, a fork, a schedule) goes through here.
"""

from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.session_key import SessionKey
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import feed, session_keys, sessions
from keryx.core.people.rules.access import audience_of
from keryx.core.people.rules.person import Person
from keryx.core.people.tables import people
from keryx.ids import Ids
from keryx.store.codec import clean_text
from keryx.store.database import Tx
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class InheritedSettings:
    """What a session takes over from the one before it, or from whoever asks for it."""

    profile: str = "main"
    audience_id: int | None = None
    """Who hears it, if that is not simply who is at its source."""
    display_name: str | None = None
    title: str | None = None
    project_id: int | None = None
    workspace: str | None = None
    model: str | None = None
    model_settings: str | None = None
    personality: str | None = None
    reset_reason: str | None = None


NOTHING = InheritedSettings()


def handed_by(session: sessions.Session) -> InheritedSettings:
    """Return what a session hands to the one that follows it: all but its audience and its names."""
    return InheritedSettings(
        profile=session.profile,
        project_id=session.project_id,
        workspace=session.workspace,
        model=session.model,
        model_settings=session.model_settings,
        personality=session.personality,
    )


def open_session(
    tx: Tx,
    ids: Ids,
    *,
    source: Source,
    owner: Person,
    key: SessionKey | None = None,
    handed: InheritedSettings = NOTHING,
) -> SessionId:
    """Open a session at ``source`` for ``owner``; with a key it becomes that surface's current one.

    What comes of it when a passing place is gone, as the end of a background process, is said at the terminal.
    """
    session_id = SessionId(ids.session_id(tx.now))
    audience_id = handed.audience_id
    if audience_id is None:
        audience_id = people.ensure_member(tx, audience_of(source, owner.id), person_id=owner.id)
    sessions.add_session(
        tx,
        id=session_id,
        source=source.lasting,
        owner_id=owner.id,
        audience_id=audience_id,
        profile=handed.profile,
        display_name=clean_text(handed.display_name or source.chat_name),
        title=clean_text(handed.title),
        title_by="person" if handed.title else None,
        project_id=handed.project_id,
        workspace=clean_text(handed.workspace),
        model=clean_text(handed.model),
        model_settings=handed.model_settings,
        personality=handed.personality,
        reset_reason=handed.reset_reason,
    )
    if key is not None:
        session_keys.add_key(tx, key, session_id=session_id, source=source, audience_id=audience_id)
    feed.add_event(tx, session_id, "session.opened")
    return session_id
