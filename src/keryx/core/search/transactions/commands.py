"""``/search``: find earlier messages. The surface runs the search, because the surface has the index."""

from keryx.core.conversations.transactions.command_context import (
    CommandContext,
    CommandOutcome,
    ask_surface,
    decline,
)
from keryx.store.database import Tx


def search(_tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Ask the surface to search."""
    if not arguments:
        return decline(context, "Say what to look for: /search <words>.")
    return ask_surface(context, "search", arguments)
