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

__all__ = ["find_current", "resolve_key"]


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
    tx: ReadTx, source: Source, *, person_id: PersonId, audience_id: int | None, settings: Settings
) -> tuple[SessionKey, KeyRecord | None]:
    """Return the key of a person at a source, and the row of the key, if it exists.

    ``audience_id`` is the audience of the source, or None if no message has arrived there.
    """
    key = resolve_key(source, settings=settings, person_id=person_id)
    current = session_keys.find_key(tx, key)
    while current is not None and not _may_continue(
        tx, source, current, person_id=person_id, audience_id=audience_id
    ):
        key = SessionKey(f"{key}:{escape_part(f'audience:{audience_id}')}")
        current = session_keys.find_key(tx, key)
    return key, current


def _may_continue(
    tx: ReadTx, source: Source, current: KeyRecord, *, person_id: PersonId, audience_id: int | None
) -> bool:
    """Return whether the session of a key has this audience or, after a link, another one of the person."""
    if current.audience_id == audience_id:
        return True
    is_private = source.chat_type == "dm"
    return is_private and people.is_member(tx, person_id=person_id, audience_id=current.audience_id)
