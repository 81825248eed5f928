"""Ask for a summary of what a session shows, as a turn of its own.

The request stands at the last message that is shown and adds none: what comes of it is a cover, and a notice to who
asked. It is carried out alone, in its place among the questions.
"""

from keryx.core.conversations.rules.message import TextPart
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import branch_paths, branches, feed, sessions
from keryx.core.turns.tables import inbox
from keryx.ids import Ids
from keryx.store.database import Tx


def compress_session(
    tx: Tx, session_id: SessionId, *, focus: str, person_id: int, source: Source, ids: Ids
) -> int | None:
    """Ask for the summary, with what it should dwell on, and return the item's id; None where nothing was said."""
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
