"""Add inbox items and end them, with the events in the feed."""

from typing import Unpack

from keryx.core.conversations.tables import feed, sessions
from keryx.core.deliveries.transactions.queue_delivery import queue_reply
from keryx.core.turns.rules.inbox import Fate, ItemPurpose
from keryx.core.turns.tables import inbox
from keryx.ids import Ids
from keryx.store.database import Tx


def queue_item(tx: Tx, **item: Unpack[inbox.NewItem]) -> int:
    """Add an item to the inbox and return its id."""
    inbox_id = inbox.add_item(tx, **item)
    feed.add_event(tx, item["session_id"], "inbox", inbox_id)
    return inbox_id


def end_item(tx: Tx, item: inbox.InboxItem, *, fate: Fate, note: str | None = None) -> None:
    """Give an open item its fate."""
    inbox.finish(tx, item.id, fate=fate, note=note)
    feed.add_event(tx, item.session_id, "inbox", item.id)


def request_turn(tx: Tx, session: sessions.Session, *, purpose: ItemPurpose, ref: str) -> int:
    """Add a request of Keryx itself (a flush, a title) and return the item's id. The ref must be new.

    The request has no message of its own: its place is the session's last message.
    """
    return queue_item(
        tx,
        session_id=session.id,
        kind="agent",
        purpose=purpose,
        is_internal=True,
        source=session.source,
        ref=ref,
        parts=(),
        person_id=None,
        seq=session.last_seq,
    )


def answer_command(tx: Tx, inbox_id: int, *, reply: str, ids: Ids) -> bool:
    """Answer a command that only a running surface can answer; return False if it was answered before.

    The command waits in the inbox until then, also after a crash.
    """
    item = inbox.find_item(tx, inbox_id)
    if item is None:
        return False
    sessions.lock_session(tx, item.session_id)
    item = inbox.find_item(tx, inbox_id)
    if item is None or (item.kind, item.state) != ("command", "ready"):
        return False
    queue_reply(tx, item.source, reply, ids=ids, session_id=item.session_id)
    end_item(tx, item, fate="command")
    return True
