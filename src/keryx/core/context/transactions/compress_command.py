"""``/compress``: make room in the context window."""

from typing import Final

from keryx.core.context.transactions.cover_messages import uncover_last
from keryx.core.conversations.rules.message import TextPart
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import branch_paths, branches, feed, sessions
from keryx.core.conversations.transactions.command_context import (
    CommandContext,
    CommandOutcome,
    ask_surface,
    decline,
    say,
)
from keryx.core.turns.tables import inbox
from keryx.ids import Ids
from keryx.store.database import Tx

NOTHING_SAID: Final = "Nothing was said here yet, so there is nothing to summarise."


def compress(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Request a summary of the earlier messages, show what it would cover, or take the last summary back."""
    person_id = context.person.id
    match arguments.lower():
        case "preview":
            return ask_surface(context, "compress", arguments)
        case "undo":
            dropped = uncover_last(tx, context.session_id, person_id=person_id)
            if dropped is None:
                return decline(context, "No summary covers a message here.")
            what = f"messages {dropped.first_seq} to {dropped.last_seq}"
            return say(context, f"The summary of {what} is taken back: the model reads the messages again.")
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


def compress_session(
    tx: Tx, session_id: SessionId, *, focus: str, person_id: int, source: Source, ids: Ids
) -> int | None:
    """Request a summary as a turn of its own, and return the inbox item; None for a session without messages.

    The item has the place of the last message and adds no message. Its turn adds a cover and sends a notice.
    """
    session = sessions.lock_session(tx, session_id)
    shown = branches.list_path(tx, session_id=session_id, branch_no=session.active_branch_no)
    last = branch_paths.list_tail(tx, shown, limit=1)
    if not last:
        return None
    inbox_id = inbox.add_item(
        tx,
        session_id=session_id,
        kind="agent",
        purpose="compress",
        is_internal=True,
        source=source,
        ref=ids.token(),
        parts=(TextPart(text=focus),) if focus else (),
        person_id=person_id,
        seq=last[0].seq,
    )
    feed.add_event(tx, session_id, "inbox", inbox_id)
    return inbox_id
