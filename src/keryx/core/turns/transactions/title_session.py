"""Ask the model for a session's title, once, unless a person has set one.

The request adds no message and gives way to every other item. If it fails, the title stays as it is.
"""

from keryx.core.conversations.rules.message import NewMessage, text_of
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.title import may_retitle, model_title_due, model_title_of
from keryx.core.conversations.tables import feed, session_changes, sessions
from keryx.core.turns.tables import inbox
from keryx.core.turns.transactions.inbox_items import request_turn
from keryx.store.database import Tx


def request_title(tx: Tx, session_id: SessionId) -> int | None:
    """Request a title and return the item's id; return None if none is due, or one was requested before."""
    session = sessions.get_session(tx, session_id)
    if not model_title_due(session.title_by, messages=session.message_total):
        return None
    ref = f"title:{session_id}"
    if inbox.find_internal(tx, ref) is not None:
        return None
    return request_turn(tx, session, purpose="title", ref=ref)


def set_model_title(tx: Tx, session_id: SessionId, answer: NewMessage) -> bool:
    """Set the title from the model's answer; return False if it has none, or a person has set one."""
    sessions.lock_session(tx, session_id)
    session = sessions.get_session(tx, session_id)
    title = model_title_of(text_of(answer.parts))
    if title is None or not may_retitle(session.title_by, "model"):
        return False
    session_changes.set_title(tx, session_id, title=title, by="model")
    feed.add_event(tx, session_id, "session.changed")
    return True
