"""Pin a message, so that no summary stands for it when a model reads the session, or no longer.

A pin belongs to the session it was made in, also on a message that a fork inherited: forks begin without pins. What
is taken back by ``/undo`` keeps its pin, and has it again when it is brought back.
"""

from keryx.core.context.tables import pins
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.tables import branch_paths, branches, feed, sessions
from keryx.errors import NotFound
from keryx.store.database import Tx


def pin_message(tx: Tx, session_id: SessionId, seq: int, *, person_id: int, pinned: bool = True) -> bool:
    """Pin a message that the session shows, or take a pin away; say whether anything changed.

    Raises ``NotFound`` where this person may not see the session, or it shows no message with that number to pin.
    """
    session = sessions.lock_session(tx, session_id)
    sessions.get_visible(tx, session_id, person_id=person_id)
    if pinned:
        shown = branches.list_path(tx, session_id=session_id, branch_no=session.active_branch_no)
        if branch_paths.find_message(tx, shown, seq) is None:
            raise NotFound(
                f"There is no message {seq} in this conversation. /pin without a number pins the last answer."
            )
        changed = pins.add_pin(tx, session_id, seq, person_id=person_id)
    else:
        changed = pins.remove_pin(tx, session_id, seq)
    if changed:
        feed.add_event(tx, session_id, "session.changed")
    return changed
