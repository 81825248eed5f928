"""Ask the model what a young conversation is about, and call it so unless a person has named it meanwhile.

One request for a session, ever. It adds no message, waits behind everything else and gives way to it, and is tried
again when it is quiet; where it fails, the title made of the first words stays.
"""

from keryx.domain.inbox import TITLE_PLATFORM
from keryx.domain.message import NewMessage, text_of
from keryx.domain.session import SessionId
from keryx.domain.title import may_retitle, model_title_due, model_title_of
from keryx.store.database import Tx
from keryx.store.tables import feed, inbox, session_changes, sessions


def ask_title(tx: Tx, session_id: SessionId) -> int | None:
    """Ask for a title in a session whose turn ends, and return the item's id; None where none is wanted."""
    session = sessions.get_session(tx, session_id)
    if not model_title_due(session.title_by, messages=session.message_total):  # type: ignore[arg-type]  # The column holds nothing else.
        return None
    ref = f"title:{session_id}"
    if inbox.find_by_ref(tx, platform=TITLE_PLATFORM, account="", ref=ref) is not None:
        return None
    inbox_id = inbox.add_item(
        tx,
        session_id=session_id,
        kind="agent",
        source=session.source,
        platform=TITLE_PLATFORM,
        ref=ref,
        parts=(),
        person_id=None,
        seq=session.last_seq,
    )
    feed.add_event(tx, session_id, "inbox", inbox_id)
    return inbox_id


def set_model_title(tx: Tx, session_id: SessionId, answer: NewMessage) -> bool:
    """Call a session what the model answered; say whether it did. A person's title stays."""
    sessions.lock_session(tx, session_id)
    session = sessions.get_session(tx, session_id)
    title = model_title_of(text_of(answer.parts))
    if title is None or not may_retitle(session.title_by, "model"):  # type: ignore[arg-type]  # As above.
        return False
    session_changes.set_title(tx, session_id, title=title, by="model")
    feed.add_event(tx, session_id, "session.changed")
    return True
