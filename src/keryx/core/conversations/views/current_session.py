"""Find the current session of a source. Only this module derives session keys.

With scope ``platform``, the sources of several people have the same key, but people with different audiences never
share a session. Such a key gets a suffix with the audience.
"""

from keryx.config import Settings
from keryx.core.conversations.rules.session_key import SessionKey, escape_part, key_for
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import session_keys
from keryx.core.conversations.tables.session_keys import KeyRecord
from keryx.core.people.rules.person import PersonId
from keryx.core.people.tables import people
from keryx.store.database import ReadTx
from keryx.values import dataclass

__all__ = ["Listener", "find_current", "resolve_key"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A person at a source, and the audience of the source; None if no message has arrived there."""

    person_id: PersonId
    audience_id: int | None


def resolve_key(source: Source, *, settings: Settings, person_id: PersonId | None = None) -> SessionKey:
    """Return the key of a source. The ids in the source must be canonical."""
    return key_for(
        source,
        settings.scope,
        profile=settings.profile,
        first_account=settings.first_accounts.get(source.platform),
        person_id=person_id,
    )


def find_current(
    tx: ReadTx, source: Source, *, listener: Listener, settings: Settings
) -> tuple[SessionKey, KeyRecord | None]:
    """Return the key of a person at a source, and the row of the key, if it exists."""
    key = resolve_key(source, settings=settings, person_id=listener.person_id)
    current = session_keys.find_key(tx, key)
    while current is not None and not _may_continue(tx, source, current, listener=listener):
        key = SessionKey(f"{key}:{escape_part(f'audience:{listener.audience_id}')}")
        current = session_keys.find_key(tx, key)
    return key, current


def _may_continue(tx: ReadTx, source: Source, current: KeyRecord, *, listener: Listener) -> bool:
    """Return whether the session of a key has the listener's audience or, after a link, another one of the person."""
    if current.audience_id == listener.audience_id:
        return True
    is_private = source.chat_type == "dm"
    return is_private and people.is_member(tx, person_id=listener.person_id, audience_id=current.audience_id)
