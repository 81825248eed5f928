"""What must hold in the rows of deliveries at every moment."""

from typing import Final

from keryx.core.values.invariant import Checks

CHECKS: Final[Checks] = {
    "delivery_invariants.replied_twice": ("I2", "a turn replied twice to {}"),
    "delivery_invariants.half_sent": ("I2", "delivery {} is in no state a delivery can be in"),
    "delivery_invariants.sent_side_by_side": ("I2", "two deliveries are being sent to {}"),
    "delivery_invariants.unheard": ("I1", "delivery {} waits for somebody who is gone"),
    "delivery_invariants.crossed_replies": ("I4", "delivery {} goes to others than those it was said to"),
}
