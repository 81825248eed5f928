"""Housekeeping: what a crash left is taken up, questions nobody answered expire, old waste is cleared.

Every step is a bounded transaction; several gateways may do this at once.
"""

import logging

from keryx.gateway.desk import Desk
from keryx.transactions.decide_approval import expire_approvals
from keryx.transactions.recover import recover

RECOVER_SECONDS = 2.0
EXPIRE_SECONDS = 15.0

_log = logging.getLogger("keryx.gateway.expiry")


async def recover_all(desk: Desk, *, deduplicating: frozenset[str]) -> None:
    """Take up everything that a crash left, a batch at a time."""
    while True:
        found = await desk.write(lambda tx: recover(tx, ids=desk.ids, deduplicating=deduplicating))
        if not found:
            return
        _log.info("took up %s turns and %s deliveries", found.turns, found.deliveries)


async def expire_questions(desk: Desk) -> None:
    """Let turns go on whose questions nobody answered in time."""
    while await desk.write(expire_approvals):
        continue
