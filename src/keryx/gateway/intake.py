"""Intake: what a platform delivers is stored, and only then acknowledged.

It runs nothing: turns begin because an inbox item exists. What cannot be read is kept as it came and holds nothing up.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from keryx.domain.access import Refused
from keryx.domain.command import COMMANDS
from keryx.domain.inbox import Inbound
from keryx.errors import InvalidValue
from keryx.gateway.desk import Desk
from keryx.gateway.log import log_of
from keryx.platforms.adapter import Adapter, Malformed, Update
from keryx.transactions.accept_message import Accepted, Duplicate, accept_message
from keryx.transactions.keep_malformed import keep_malformed

_log = log_of("intake")


async def take_in(desk: Desk, adapter: Adapter, *, opened: Callable[[], None] = lambda: None) -> None:
    """Store and acknowledge what the adapter receives, in order, until it ends or fails.

    ``opened`` is called when whatever arrives is received.
    """
    await adapter.connect()
    opened()
    offering = asyncio.create_task(_offer_commands(adapter))
    try:
        async with aclosing(adapter.receive()) as updates:
            async for update in updates:
                outcome = await accept_update(desk, adapter, update)
                await adapter.acknowledge(update, refused=outcome if isinstance(outcome, Refused) else None)
    finally:
        offering.cancel()
        await asyncio.gather(offering, return_exceptions=True)


async def _offer_commands(adapter: Adapter) -> None:
    """Fill the platform's menu; a courtesy, so what goes wrong is logged and changes nothing."""
    if not adapter.capabilities.has_menu:
        return
    try:
        await adapter.offer_commands(COMMANDS)
    except Exception as error:  # noqa: BLE001 - an adapter is somebody else's code, and this is no promise
        _log.failed("the menu of %s could not be filled", adapter.platform, error=error)


async def accept_update(
    desk: Desk, adapter: Adapter, update: Update
) -> Accepted | Duplicate | Refused | None:
    """Store one update; returns once that is durable, however long the store is away."""
    if isinstance(update, Malformed):
        await _keep(desk, adapter, update)
        return None
    try:
        outcome = await desk.insist(
            lambda tx: accept_message(tx, update, settings=desk.settings, ids=desk.ids), what="intake"
        )
    except InvalidValue as error:
        await _keep(desk, adapter, _unusable(update, str(error)))
        return None
    match outcome:
        case Accepted():
            desk.metrics.updates.count("accepted")
            _log.info("accepted", extra={"session": outcome.session_id, "inbox": outcome.inbox_id})
        case Duplicate():
            desk.metrics.updates.count("duplicate")
            _log.info("came again", extra={"session": outcome.session_id, "inbox": outcome.inbox_id})
        case Refused():
            desk.metrics.updates.count("refused")
            _log.info("refused a message on %s: %s", adapter.platform, outcome.reason)
    return outcome


async def _keep(desk: Desk, adapter: Adapter, update: Malformed) -> None:
    desk.metrics.updates.count("malformed")
    # Not why: the reason quotes what came. It is kept with it.
    _log.warning("an update of %s could not be read; it is kept as it came", adapter.platform)
    await desk.insist(
        lambda tx: keep_malformed(
            tx,
            platform=adapter.platform,
            account=adapter.account or "",
            ref=update.ref,
            raw=update.raw,
            reason=update.reason,
        ),
        what="intake",
    )


def _unusable(inbound: Inbound, reason: str) -> Malformed:
    return Malformed(ref=inbound.ref, raw=repr(inbound), reason=reason)
