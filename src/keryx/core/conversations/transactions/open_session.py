"""Open a session. Its owner and its audience never change.

First messages, resets, ``/new``, delegations and schedules open sessions here. A fork and an import add their rows
themselves.
"""

from dataclasses import asdict

from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.session_key import SessionKey
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import feed, session_keys, sessions
from keryx.core.people.rules.access import audience_of
from keryx.core.people.rules.person import Person
from keryx.core.people.tables import people
from keryx.ids import Ids
from keryx.store.codec import clean_columns
from keryx.store.database import Tx
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialSettings:
    """The settings of a new session, inherited from another session or chosen by the caller."""

    profile: str = "main"
    audience_id: int | None = None
    """The audience, if it is not the audience of the source."""
    display_name: str | None = None
    title: str | None = None
    project_id: int | None = None
    workspace: str | None = None
    model: str | None = None
    model_settings: str | None = None
    personality: str | None = None
    reset_reason: str | None = None


DEFAULTS = InitialSettings()


def inherited_settings(session: sessions.Session) -> InitialSettings:
    """Return the settings that the session after ``session`` inherits: all but the audience and the names."""
    return InitialSettings(
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
    initial: InitialSettings = DEFAULTS,
) -> SessionId:
    """Open a session at ``source`` for ``owner``, and point ``key`` to it, if given.

    A session of a one-shot source belongs to the terminal, which shows later output, such as the end of a process.
    """
    session_id = SessionId(ids.session_id(tx.now))
    audience_id = initial.audience_id
    if audience_id is None:
        audience_id = people.ensure_member(tx, audience_of(source, owner.id), person_id=owner.id)
    columns = asdict(initial) | {
        "audience_id": audience_id,
        "display_name": initial.display_name or source.chat_name,
        "title_by": "person" if initial.title else None,
    }
    sessions.add_session(
        tx, id=session_id, source=source.durable, owner_id=owner.id, **clean_columns(columns)
    )
    if key is not None:
        session_keys.add_key(tx, key, session_id=session_id, source=source, audience_id=audience_id)
    feed.add_event(tx, session_id, "session.opened")
    return session_id
