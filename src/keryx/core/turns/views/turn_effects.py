"""What the calls of turns did to the world."""

from keryx.core.values.turn_states import StepEffect
from keryx.store.database import ReadTx


def list_effects(tx: ReadTx, *, session_id: str, branch_no: int, after_seq: int) -> list[StepEffect]:
    """Return what the calls made after a message of a branch do to the world."""
    rows = tx.rows("turn_effects.list", session_id=session_id, branch_no=branch_no, after_seq=after_seq)
    return [effect for (effect,) in rows]
