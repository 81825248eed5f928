"""Which conversation a source takes part in now: the only place that derives a session key.

The settings decide about the key, and the audience about whether what the key points to may be continued: several
people may share the spelling of a key (one bot, scope ``platform``), but never a conversation.
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
    """A person at a source, and the audience of what is said there; None if nothing was ever said there."""

    person_id: PersonId
    audience_id: int | None


def resolve_key(source: Source, *, settings: Settings, person_id: PersonId | None = None) -> SessionKey:
    """Return the key of a source under the settings. The aliases in the source must be resolved already."""
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
    """Return the key of a person's conversation at a source, and where it points, if it has pointed anywhere."""
    key = resolve_key(source, settings=settings, person_id=listener.person_id)
    current = session_keys.find_key(tx, key)
    while current is not None and not _hears(tx, source, current, listener=listener):
        key = SessionKey(f"{key}:{escape_part(f'audience:{listener.audience_id}')}")
        current = session_keys.find_key(tx, key)
    return key, current


def _hears(tx: ReadTx, source: Source, current: KeyRecord, *, listener: Listener) -> bool:
    """Say whether what is said under a key is said to this listener, under this or, since linked, another name."""
    if current.audience_id == listener.audience_id:
        return True
    is_private = source.chat_type == "dm"
    return is_private and people.is_member(tx, person_id=listener.person_id, audience_id=current.audience_id)
