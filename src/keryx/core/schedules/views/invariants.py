"""What must hold in the rows of schedules and their fires at every moment."""

from typing import Final

from keryx.core.values.invariant import Checks

CHECKS: Final[Checks] = {
    "schedule_invariants.wrong_fires": ("I9", "a fire of schedule {} is not what became of its run"),
    "schedule_invariants.repeating_schedules": (
        "I9",
        "schedule {} is due at an instant already accounted for",
    ),
}
