"""Ask for a summary of what a session shows, as a turn of its own.

The request stands at the last message that is shown and adds none: what comes of it is a cover, and a notice to who
asked. It is carried out alone, in its place among the questions.
"""

from keryx.domain.inbox import COMPRESS_PLATFORM
from keryx.domain.message import TextPart
from keryx.domain.session import SessionId
from keryx.domain.source import Source
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.store.tables import branches, feed, inbox, paths, sessions


def compress_session(
    tx: Tx, session_id: SessionId, *, focus: str, person_id: int, source: Source, ids: Ids
) -> int | None:
    """Ask for the summary, with what it should dwell on, and return the item's id; None where nothing was said."""
    session = sessions.lock_session(tx, session_id)
    shown = branches.list_path(tx, session_id=session_id, branch_no=session.active_branch_no)
    last = paths.list_tail(tx, shown, limit=1)
    if not last:
        return None
    inbox_id = inbox.add_item(
        tx,
        session_id=session_id,
        kind="agent",
        source=source,
        platform=COMPRESS_PLATFORM,
        ref=ids.token(),
        parts=(TextPart(text=focus),) if focus else (),
        person_id=person_id,
        seq=last[0].seq,
    )
    feed.add_event(tx, session_id, "inbox", inbox_id)
    return inbox_id
