"""Housekeeping: what a crash left is taken up, questions nobody answered expire, memory is flushed before a reset.

Every step is a bounded transaction; several gateways may do this at once.
"""

from functools import partial

from keryx.gateway.desk import Desk
from keryx.gateway.log import log_of
from keryx.transactions.decide_approval import expire_approvals
from keryx.transactions.flush_session import flush_session
from keryx.transactions.recover import recover
from keryx.views.expiring import list_expiring

RECOVER_SECONDS = 2.0
EXPIRE_SECONDS = 15.0
FLUSH_SECONDS = 5.0
"""How often it is looked which sessions expire soon; a look reads only those, and an idle one writes nothing."""

_log = log_of("expiry")


async def recover_all(desk: Desk, *, deduplicating: frozenset[str]) -> None:
    """Take up everything that a crash left, a batch at a time."""
    while True:
        found = await desk.write(
            lambda tx: recover(tx, ids=desk.ids, profile=desk.settings.profile, deduplicating=deduplicating)
        )
        if not found:
            return
        desk.metrics.recovered.count("turn", found.turns)
        desk.metrics.recovered.count("delivery", found.deliveries)
        _log.info("took up %s turns and %s deliveries", found.turns, found.deliveries)


async def expire_questions(desk: Desk) -> None:
    """Let turns go on whose questions nobody answered in time."""
    while await desk.write(lambda tx: expire_approvals(tx, ids=desk.ids)):
        continue


async def flush_expiring(desk: Desk) -> None:
    """Ask for a flush in the sessions that expire soon; the turn loop runs it like anything else that waits."""
    settings = desk.settings
    for session_id in await desk.database.read(lambda tx: list_expiring(tx, settings.reset)):
        inbox_id = await desk.write(partial(flush_session, session_id=session_id, settings=settings))
        if inbox_id is not None:
            _log.info("memory is flushed before a reset", extra={"session": session_id, "inbox": inbox_id})
