"""Answer a command that only a surface can answer; it waits in the inbox until somebody does, also over a crash."""

from keryx.domain.message import TextPart
from keryx.domain.route import Address
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.store.tables import feed, inbox, outbox, sessions


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
    added = outbox.add_delivery(
        tx,
        address=Address.of(item.source),
        kind="notice",
        parts=(TextPart(text=reply),),
        idempotency_key=ids.token(),
        session_id=item.session_id,
        reply_to=item.source.message_id,
    )
    feed.add_event(tx, item.session_id, "delivery", added)
    feed.add_event(tx, item.session_id, "inbox", inbox_id)
    return True
