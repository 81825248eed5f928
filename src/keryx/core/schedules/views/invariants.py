"""The invariants of schedules and their fires."""

from typing import Final

from keryx.core.values.invariant import Checks

CHECKS: Final[Checks] = {
    "schedule_invariants.wrong_fires": ("I9", "a fire of schedule {} has another state than its inbox item"),
    "schedule_invariants.repeating_schedules": ("I9", "schedule {} is due at a fired or skipped instant"),
}
