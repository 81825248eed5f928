"""Cancel one inbox item. Other items change only if the same turn answers them."""

from keryx.core.conversations.rules.part import TextPart
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.tables import sessions
from keryx.core.deliveries.tables import outbox
from keryx.core.turns.rules.lease import TurnLease
from keryx.core.turns.tables import inbox, leases, turns
from keryx.core.turns.transactions.fail_turn import STOPPED, stop_session
from keryx.core.turns.transactions.inbox_items import end_item
from keryx.core.turns.transactions.record_step import close_steps
from keryx.store.database import Tx


def cancel_item(tx: Tx, inbox_id: int, *, holder: str) -> None:
    """Cancel a waiting item, or stop the turn that answers it; an ended item stays as it is."""
    found = inbox.find_item(tx, inbox_id)
    assert found is not None, "accepted items are kept"
    session_id = SessionId(found.session_id)
    sessions.lock_session(tx, session_id)
    item = inbox.find_item(tx, inbox_id)
    assert item is not None
    if item.state == "claimed":
        stop_session(tx, session_id, holder=holder)
    elif item.state == "ready":
        # An item in the transcript belonged to an earlier turn, which may have left calls and previews open.
        if item.seq is not None and turns.find_live_turn(tx, session_id) is None:
            _close_calls(tx, session_id, holder=holder)
            outbox.end_previews(tx, session_id, (TextPart(text=STOPPED),))
        end_item(tx, item, fate="cancelled", note="stopped")


def _close_calls(tx: Tx, session_id: SessionId, *, holder: str) -> None:
    """Close the calls that earlier turns left for the next one."""
    lease = leases.take_lease(tx, session_id, holder=holder)
    assert lease is not None, "no turn is live, and the session is locked"
    for turn_id in sorted({step.turn_id for step in turns.list_open_steps(tx, session_id)}):
        close_steps(tx, TurnLease(lease=lease, turn_id=turn_id))
    leases.release_lease(tx, lease)
