"""Send heartbeats, recover after crashes, expire unanswered questions, and flush memory before a reset.

Every step is a bounded transaction. Several gateways may run this at once.
"""

import os
import socket
from functools import partial
from typing import Literal

from keryx import __version__
from keryx.core.approvals.transactions.decide_approval import expire_approvals
from keryx.core.turns.transactions.flush_session import flush_session
from keryx.core.turns.views.expiring_sessions import list_expiring
from keryx.core.upkeep.transactions.record_heartbeat import enter_node
from keryx.core.upkeep.transactions.recover import recover
from keryx.gateway.runtime.log import log_of
from keryx.gateway.runtime.runtime import Runtime

RECOVER_SECONDS = 2.0
EXPIRE_SECONDS = 15.0
FLUSH_SECONDS = 5.0
"""How often to look for sessions that expire soon. A look reads only those, and writes only if one is due."""

_log = log_of("expiry")


async def send_heartbeat(runtime: Runtime, kind: Literal["gateway", "chat"]) -> None:
    """Record that this process works on the store. Due as often as leases are renewed."""
    host, pid = socket.gethostname(), os.getpid()
    await runtime.database.write(
        lambda tx: enter_node(tx, holder=runtime.holder, kind=kind, host=host, pid=pid, version=__version__)
    )


async def recover_all(runtime: Runtime, *, deduplicating: frozenset[str]) -> None:
    """Recover everything that a crash left unfinished, one batch at a time."""
    while True:
        found = await runtime.database.write(
            lambda tx: recover(tx, ids=runtime.ids, settings=runtime.settings, deduplicating=deduplicating)
        )
        if not found:
            return
        runtime.metrics.recovered.update(turn=found.turns, delivery=found.deliveries)
        _log.info("recovered %s turns and %s deliveries", found.turns, found.deliveries)


async def expire_questions(runtime: Runtime) -> None:
    """Expire unanswered questions, so that their turns continue."""
    while await runtime.database.write(lambda tx: expire_approvals(tx, ids=runtime.ids)):
        pass


async def flush_expiring(runtime: Runtime) -> None:
    """Request a memory flush in the sessions that expire soon. The turn loop runs it like any other item."""
    settings = runtime.settings
    for session_id in await runtime.database.read(lambda tx: list_expiring(tx, settings.reset)):
        inbox_id = await runtime.database.write(
            partial(flush_session, session_id=session_id, settings=settings)
        )
        if inbox_id is not None:
            _log.info("flushing memory before a reset", extra={"session": session_id, "inbox": inbox_id})
