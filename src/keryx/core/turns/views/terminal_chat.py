"""The chat at a terminal: where its messages come from, and the session that they belong to."""

from keryx.config import Settings
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.views.current_session import find_current
from keryx.core.deliveries.rules.route import Address
from keryx.core.people.rules.access import audience_of
from keryx.core.people.tables import people
from keryx.store.database import ReadTx
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalChat:
    """The chat at one terminal: the source of its messages, and the settings that decide which session they join."""

    source: Source
    settings: Settings

    @property
    def address(self) -> Address:
        """The address that replies to the terminal go to."""
        return Address.of(self.source)


def find_session(tx: ReadTx, chat: LocalChat) -> str | None:
    """Return the current session of the chat, or None before the first message."""
    owner = people.find_owner(tx)
    if owner is None:
        return None
    audience_id = people.find_audience(tx, audience_of(chat.source, owner.id))
    _key, found = find_current(
        tx, chat.source, person_id=owner.id, audience_id=audience_id, settings=chat.settings
    )
    return None if found is None else found.session_id
