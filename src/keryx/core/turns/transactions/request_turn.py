"""Ask for a turn that Keryx itself wants: notes before a session expires, a title for a young one.

The request stands at the session's last message and adds none. Its ref says what was asked, so it is asked once.
"""

from keryx.core.conversations.tables import feed, sessions
from keryx.core.turns.rules.inbox import ItemPurpose
from keryx.core.turns.tables import inbox
from keryx.store.database import Tx


def request_turn(tx: Tx, session: sessions.Session, *, purpose: ItemPurpose, ref: str) -> int:
    """Add the request to the inbox of a session and return the item's id. The ref must be new."""
    inbox_id = inbox.add_item(
        tx,
        session_id=session.id,
        kind="agent",
        purpose=purpose,
        is_sent=False,
        source=session.source,
        ref=ref,
        parts=(),
        person_id=None,
        seq=session.last_seq,
    )
    feed.add_event(tx, session.id, "inbox", inbox_id)
    return inbox_id
