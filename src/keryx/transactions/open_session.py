"""Open a session: a conversation with an owner and an audience that never change.

Every other way a session comes to be (a first message, a reset, ``/new``, a fork, a schedule) goes through here.
"""

from keryx.domain.access import audience_of
from keryx.domain.person import Person
from keryx.domain.session import SessionId
from keryx.domain.session_key import SessionKey
from keryx.domain.source import Source
from keryx.ids import Ids
from keryx.store.codec import clean_text
from keryx.store.database import Tx
from keryx.store.tables import feed, keys, people, sessions
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
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


NOTHING = Handed()


def open_session(
    tx: Tx,
    ids: Ids,
    *,
    source: Source,
    owner: Person,
    key: SessionKey | None = None,
    handed: Handed = NOTHING,
) -> SessionId:
    """Open a session at ``source`` for ``owner``; with a key it becomes that surface's current one.

    What comes of it when a passing place is gone, as the end of a background process, is said at the terminal.
    """
    session_id = SessionId(ids.session_id(tx.now))
    audience_id = handed.audience_id
    if audience_id is None:
        audience_id = people.ensure_audience(tx, audience_of(source, owner.id))
        people.join_audience(tx, person_id=owner.id, audience_id=audience_id)
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
        keys.add_key(tx, key, session_id=session_id, source=source, audience_id=audience_id)
    feed.add_event(tx, session_id, "session.opened")
    return session_id
