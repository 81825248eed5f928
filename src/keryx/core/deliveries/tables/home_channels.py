"""Home channels: where a platform's output goes when no chat is named."""

from typing import NamedTuple

from keryx.core.deliveries.rules.route import Address
from keryx.store.codec import clean_text
from keryx.store.database import ReadTx, Tx


class Home(NamedTuple):
    """A home channel and what its chat is called."""

    address: Address
    chat_name: str | None


def set_home(tx: Tx, home: Home, *, set_by: int) -> None:
    """Make a chat the home channel of its account."""
    address = home.address
    tx.run(
        "home_channels.set",
        platform=address.platform,
        account=address.account or "",
        chat_id=address.chat_id,
        thread_id=address.thread_id,
        chat_name=clean_text(home.chat_name),
        set_by=set_by,
    )


def list_homes(tx: ReadTx) -> dict[str, Home]:
    """Return each platform's home channel; of several accounts' the one set last."""
    return {
        platform: Home(
            Address(platform=platform, account=account or None, chat_id=chat_id, thread_id=thread_id),
            chat_name,
        )
        for platform, account, chat_id, thread_id, chat_name in tx.rows("home_channels.list")
    }
