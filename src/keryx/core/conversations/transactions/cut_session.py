"""Take back the end of a transcript by messages instead of turns: for programs that keep items, not turns.

Like every undo it makes a branch, so nothing is lost and ``redo`` brings it back.
"""

from keryx.core.conversations.rules.branch import branch_at
from keryx.core.conversations.rules.message import Message
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.tables import branches, messages, sessions
from keryx.core.conversations.tables.messages import SEQ_MAX
from keryx.core.conversations.transactions.branch_session import switch_branch
from keryx.core.conversations.transactions.session_guard import Actor, lock_idle
from keryx.store.database import Tx


def pop_message(tx: Tx, session_id: SessionId, *, actor: Actor) -> Message | None:
    """Take back the last message and return it; None when there is none."""
    session = lock_idle(tx, session_id, actor=actor)
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
    _keep(tx, session, last[1].seq if len(last) == 2 else 0, actor=actor)
    return last[0]


def clear_messages(tx: Tx, session_id: SessionId, *, actor: Actor) -> None:
    """Show an empty transcript; what was said stays on the branch it is on."""
    session = lock_idle(tx, session_id, actor=actor)
    if session.message_count:
        _keep(tx, session, 0, actor=actor)


def _keep(tx: Tx, session: sessions.Session, up_to: int, *, actor: Actor) -> None:
    shown = branches.list_path(tx, session_id=session.id, branch_no=session.active_branch_no)
    session_id, no = SessionId(session.id), session.last_branch_no + 1
    branches.add_branch(tx, branch_at(shown, up_to, session_id=session_id, no=no, reason="undo"))
    switch_branch(tx, session_id, no, actor=actor)
