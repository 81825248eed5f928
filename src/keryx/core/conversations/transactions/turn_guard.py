"""Hold a turn: every write of a turn begins by showing that its lease is still good.

A late holder, or one that names a turn of somebody else's lease, writes nothing.
"""

from keryx.core.turns.rules.lease import TurnLease
from keryx.core.turns.tables import leases, turns
from keryx.store.database import Tx


def hold_turn(tx: Tx, held: TurnLease) -> turns.Turn:
    """Return the running turn of this lease, its session locked; raises ``LeaseLost`` for a late holder."""
    leases.require_lease(tx, held.lease)
    turn = turns.get_turn(tx, held.turn_id)
    if (turn.session_id, turn.epoch, turn.state) != (held.session_id, held.lease.epoch, "running"):
        raise leases.lost(held.lease)
    return turn
