"""Hold a turn: every write of a turn begins by showing that its lease is still good.

A late holder, or one that names a turn of somebody else's lease, writes nothing.
"""

from keryx.domain.lease import Lease
from keryx.domain.turn import TurnId
from keryx.store.database import Tx
from keryx.store.tables import leases, turns


def hold_turn(tx: Tx, lease: Lease, *, turn_id: TurnId) -> turns.Turn:
    """Return the running turn of this lease, its session locked; raises ``LeaseLost`` for a late holder."""
    leases.require_lease(tx, lease)
    turn = turns.get_turn(tx, turn_id)
    if (turn.session_id, turn.epoch, turn.state) != (lease.session_id, lease.epoch, "running"):
        raise leases.lost(lease)
    return turn
