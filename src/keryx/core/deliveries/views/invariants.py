"""The invariants of deliveries."""

from typing import Final

from keryx.core.values.invariant import Checks

CHECKS: Final[Checks] = {
    "delivery_invariants.replied_twice": ("I2", "a turn replied twice to {}"),
    "delivery_invariants.half_sent": ("I2", "delivery {} is in an impossible state"),
    "delivery_invariants.sent_side_by_side": ("I2", "two deliveries are being sent to {}"),
    "delivery_invariants.orphaned": ("I1", "delivery {} waits for a program that has ended"),
    "delivery_invariants.crossed_replies": ("I4", "delivery {} goes to another audience than its session's"),
}
