"""Home channels: the chats that receive a platform's output if a route names no chat."""

from typing import NamedTuple

from keryx.core.deliveries.rules.route import Address
from keryx.store.codec import clean_text
from keryx.store.database import ReadTx, Tx


class Home(NamedTuple):
    """A home channel, and the name of its chat."""

    address: Address
    chat_name: str | None


def set_home(tx: Tx, home: Home, *, set_by: int) -> None:
    """Make a chat the home channel of its account."""
    tx.run("home_channels.set", **home.address.columns(), chat_name=clean_text(home.chat_name), set_by=set_by)


def list_homes(tx: ReadTx) -> dict[str, Home]:
    """Return the home channel of each platform; if several accounts have one, the newest."""
    return {
        platform: Home(Address.from_columns(platform, *where), chat_name)
        for platform, *where, chat_name in tx.rows("home_channels.list")
    }
