"""``/compress``: make room in the context window."""

from typing import Final

from keryx.core.context.transactions.compress_session import compress_session
from keryx.core.context.transactions.cover_messages import uncover_last
from keryx.core.conversations.transactions.command_context import (
    CommandContext,
    CommandOutcome,
    ask_surface,
    decline,
    say,
)
from keryx.store.database import Tx

NOTHING_SAID: Final = "Nothing was said here yet, so there is nothing to summarise."


def compress(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Have what came before summarised, show what that would be, or take the last summary back."""
    person_id = context.person.id
    match arguments.lower():
        case "preview":
            return ask_surface(context, "compress", arguments)
        case "undo":
            dropped = uncover_last(tx, context.session_id, person_id=person_id)
            if dropped is None:
                return decline(context, "No summary stands for anything here.")
            what = f"messages {dropped.first_seq} to {dropped.last_seq}"
            return say(context, f"The summary of {what} is taken back: the model reads what it stood for.")
        case _:
            asked = compress_session(
                tx,
                context.session_id,
                focus=arguments,
                person_id=person_id,
                source=context.source,
                ids=context.ids,
            )
            if asked is None:
                return decline(context, NOTHING_SAID)
            return CommandOutcome(session_id=context.session_id, queued=asked)
