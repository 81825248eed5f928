"""Cancel something that was said: whoever said it no longer wants it answered.

Nothing else of the conversation is touched, unless it is being answered by the same turn.
"""

from keryx.core.conversations.rules.part import TextPart
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.tables import feed, sessions
from keryx.core.deliveries.tables import outbox
from keryx.core.turns.rules.lease import TurnLease
from keryx.core.turns.tables import inbox, leases, turns
from keryx.core.turns.transactions.close_steps import close_steps
from keryx.core.turns.transactions.fail_turn import STOPPED, stop_session
from keryx.store.database import Tx

NOTE = "stopped"


def cancel_item(tx: Tx, inbox_id: int, *, holder: str) -> None:
    """Cancel an item that waits, or stop the turn that answers it; one that has its fate keeps it."""
    found = inbox.find_item(tx, inbox_id)
    assert found is not None, "what was accepted is kept"
    session_id = SessionId(found.session_id)
    sessions.lock_session(tx, session_id)
    item = inbox.find_item(tx, inbox_id)
    assert item is not None
    if item.state == "claimed":
        stop_session(tx, session_id, holder=holder)
    elif item.state == "ready":
        # One that stands in the transcript was a turn's before; a turn that was handed back counts as no attempt.
        if item.seq is not None and turns.find_live_turn(tx, session_id) is None:
            _close_calls(tx, session_id, holder=holder)
            outbox.end_held(tx, session_id, (TextPart(text=STOPPED),))
        inbox.finish(tx, inbox_id, fate="cancelled", note=NOTE)
        feed.add_event(tx, session_id, "inbox", inbox_id)


def _close_calls(tx: Tx, session_id: SessionId, *, holder: str) -> None:
    """End the calls that turns left for the one that will not come."""
    lease = leases.take_lease(tx, session_id, holder=holder)
    assert lease is not None, "no turn lives, and the session is locked"
    for turn_id in sorted({step.turn_id for step in turns.list_open_steps(tx, session_id)}):
        close_steps(tx, TurnLease(lease=lease, turn_id=turn_id))
    leases.release_lease(tx, lease)
