"""What must hold in the rows of approvals at every moment."""

from typing import Final

from keryx.core.values.invariant import Checks

CHECKS: Final[Checks] = {
    "approval_invariants.crossed_rules": (
        "I4",
        "approval {} was given by somebody else's word, or by one for elsewhere",
    ),
}
