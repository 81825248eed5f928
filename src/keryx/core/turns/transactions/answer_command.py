"""Answer a command that only a surface can answer; it waits in the inbox until somebody does, also over a crash."""

from keryx.core.conversations.tables import feed, sessions
from keryx.core.deliveries.transactions.queue_delivery import queue_reply
from keryx.core.turns.tables import inbox
from keryx.ids import Ids
from keryx.store.database import Tx


def answer_command(tx: Tx, inbox_id: int, *, reply: str, ids: Ids) -> bool:
    """Say the answer where it was asked, once; False when somebody else was faster."""
    item = inbox.find_item(tx, inbox_id)
    if item is None:
        return False
    sessions.lock_session(tx, item.session_id)
    item = inbox.find_item(tx, inbox_id)
    if item is None or (item.kind, item.state) != ("command", "ready"):
        return False
    inbox.finish(tx, inbox_id, fate="command")
    queue_reply(tx, item.source, reply, ids=ids, session_id=item.session_id)
    feed.add_event(tx, item.session_id, "inbox", inbox_id)
    return True
