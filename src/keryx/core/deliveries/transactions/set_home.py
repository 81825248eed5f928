"""Set the home channel of a platform."""

from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import feed
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.tables import home_channels
from keryx.core.people.rules.person import PersonId
from keryx.store.database import Tx


def set_home(tx: Tx, source: Source, *, by: PersonId) -> Address:
    """Make the chat of ``source`` its platform's home channel, and return its address."""
    source = source.durable
    address = Address.of(source)
    home_channels.set_home(tx, home_channels.Home(address, source.chat_name), set_by=by)
    feed.add_personal_event(tx, by, "home")
    return address
