"""Take back the end of a transcript by messages instead of turns: for programs that keep items, not turns.

Like every undo it makes a branch, so nothing is lost and ``redo`` brings it back.
"""

from keryx.domain.branch import branch_at
from keryx.domain.message import Message
from keryx.domain.session import SessionId
from keryx.store.database import Tx
from keryx.store.tables import branches, messages, sessions
from keryx.store.tables.messages import SEQ_MAX
from keryx.transactions.branch_session import switch_branch
from keryx.transactions.idle_session import lock_idle


def pop_message(tx: Tx, session_id: SessionId, *, person_id: int) -> Message | None:
    """Take back the last message and return it; None when there is none."""
    session = lock_idle(tx, session_id, person_id=person_id)
    last: list[Message] = []
    for segment in reversed(
        branches.list_path(tx, session_id=session_id, branch_no=session.active_branch_no)
    ):
        last += messages.list_last(
            tx,
            session_id=segment.session_id,
            branch_no=segment.branch_no,
            first_seq=segment.first_seq,
            last_seq=SEQ_MAX if segment.last_seq is None else segment.last_seq,
            limit=2 - len(last),
        )
        if len(last) == 2:
            break
    if not last:
        return None
    _keep(tx, session, last[1].seq if len(last) == 2 else 0, person_id=person_id)
    return last[0]


def clear_messages(tx: Tx, session_id: SessionId, *, person_id: int) -> None:
    """Show an empty transcript; what was said stays on the branch it is on."""
    session = lock_idle(tx, session_id, person_id=person_id)
    if session.message_count:
        _keep(tx, session, 0, person_id=person_id)


def _keep(tx: Tx, session: sessions.SessionRecord, up_to: int, *, person_id: int) -> None:
    shown = branches.list_path(tx, session_id=session.id, branch_no=session.active_branch_no)
    session_id, no = SessionId(session.id), session.last_branch_no + 1
    branches.add_branch(tx, branch_at(shown, up_to, session_id=session_id, no=no, reason="undo"))
    switch_branch(tx, session_id, no, person_id=person_id)
