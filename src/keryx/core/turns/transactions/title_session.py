"""Ask the model what a young conversation is about, and call it so unless a person has named it meanwhile.

One request for a session, ever. It adds no message, waits behind everything else and gives way to it, and is tried
again when it is quiet; where it fails, the title made of the first words stays.
"""

from keryx.core.conversations.rules.message import NewMessage, text_of
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.title import may_retitle, model_title_due, model_title_of
from keryx.core.conversations.tables import feed, session_changes, sessions
from keryx.core.turns.tables import inbox
from keryx.core.turns.transactions.request_turn import request_turn
from keryx.store.database import Tx


def ask_title(tx: Tx, session_id: SessionId) -> int | None:
    """Ask for a title in a session whose turn ends, and return the item's id; None where none is wanted."""
    session = sessions.get_session(tx, session_id)
    if not model_title_due(session.title_by, messages=session.message_total):
        return None
    ref = f"title:{session_id}"
    if inbox.find_unsent(tx, ref) is not None:
        return None
    return request_turn(tx, session, purpose="title", ref=ref)


def set_model_title(tx: Tx, session_id: SessionId, answer: NewMessage) -> bool:
    """Call a session what the model answered; say whether it did. A person's title stays."""
    sessions.lock_session(tx, session_id)
    session = sessions.get_session(tx, session_id)
    title = model_title_of(text_of(answer.parts))
    if title is None or not may_retitle(session.title_by, "model"):
        return False
    session_changes.set_title(tx, session_id, title=title, by="model")
    feed.add_event(tx, session_id, "session.changed")
    return True
