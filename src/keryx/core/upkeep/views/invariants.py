"""Check the invariants of all subjects: what holds in every store at every moment, also after a crash.

The same check runs after every step of the tests, in ``keryx doctor`` and after a restore. It changes nothing.
"""

from typing import Final

from keryx.core.approvals import views as approvals
from keryx.core.context.views.invariants import follow_covers
from keryx.core.conversations.views import invariants as conversations
from keryx.core.deliveries.views import invariants as deliveries
from keryx.core.schedules.views import invariants as schedules
from keryx.core.turns.views import invariants as turns
from keryx.core.values.invariant import Breach, Checks
from keryx.store.database import ReadTx

__all__ = ["CHECKS", "Breach", "check_invariants"]

FOUND_MAX = 100

CHECKS: Final[Checks] = {
    **turns.CHECKS,
    **deliveries.CHECKS,
    **conversations.CHECKS,
    **approvals.CHECKS,
    **schedules.CHECKS,
}
"""The invariants of all subjects that one statement can check."""


def check_invariants(tx: ReadTx, *, found_max: int = FOUND_MAX) -> list[Breach]:
    """Return every breach, at most ``found_max`` of each kind; a sound store has none."""
    breaches = [
        Breach(rule=rule, session_id=session_id, what=what.format(about))
        for check, (rule, what) in CHECKS.items()
        for session_id, about in tx.rows(check, limit=found_max)
    ]
    return [*breaches, *conversations.follow_branches(tx), *follow_covers(tx)]
