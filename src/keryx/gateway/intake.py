"""Intake: store each update of a platform, then acknowledge it.

Intake starts no turn: a turn starts because an inbox item exists. An update that cannot be parsed is kept as it
came, and intake goes on.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from keryx.core.people.rules.access import Refused
from keryx.core.turns.rules.inbox import Inbound
from keryx.core.turns.transactions.accept_message import Accepted, Duplicate, accept_message
from keryx.core.upkeep.transactions.keep_malformed import keep_malformed
from keryx.errors import InvalidValue
from keryx.gateway.runtime.log import log_of
from keryx.gateway.runtime.runtime import Runtime
from keryx.platforms.adapter import Adapter, Malformed, Update

_log = log_of("intake")


async def take_in(runtime: Runtime, adapter: Adapter, *, opened: Callable[[], None] = lambda: None) -> None:
    """Store and acknowledge what the adapter receives, in order, until it ends or fails.

    ``opened`` is called once the adapter is connected.
    """
    await adapter.connect()
    opened()
    offering = asyncio.create_task(_offer_commands(runtime, adapter))
    try:
        async with aclosing(adapter.receive()) as updates:
            async for update in updates:
                outcome = await accept_update(runtime, adapter, update)
                await adapter.acknowledge(update, refused=outcome if isinstance(outcome, Refused) else None)
    finally:
        offering.cancel()
        await asyncio.gather(offering, return_exceptions=True)


async def _offer_commands(runtime: Runtime, adapter: Adapter) -> None:
    """Fill the platform's command menu. Failures are logged and change nothing."""
    if not adapter.capabilities.has_menu:
        return
    try:
        await adapter.offer_commands(runtime.commands.commands)
    except Exception as error:  # noqa: BLE001 - an adapter is somebody else's code, and this is no promise
        _log.failed("the menu of %s could not be filled", adapter.platform, error=error)


async def accept_update(
    runtime: Runtime, adapter: Adapter, update: Update
) -> Accepted | Duplicate | Refused | None:
    """Store one update. Return when it is durable, however long the store is unavailable."""
    if isinstance(update, Malformed):
        await _keep(runtime, adapter, update)
        return None
    try:
        outcome = await runtime.insist(
            lambda tx: accept_message(
                tx, update, settings=runtime.settings, ids=runtime.ids, commands=runtime.commands
            ),
            what="intake",
        )
    except InvalidValue as error:
        await _keep(runtime, adapter, _unusable(update, str(error)))
        return None
    match outcome:
        case Accepted():
            runtime.metrics.updates.count("accepted")
            _log.info("accepted", extra={"session": outcome.session_id, "inbox": outcome.inbox_id})
        case Duplicate():
            runtime.metrics.updates.count("duplicate")
            _log.info("came again", extra={"session": outcome.session_id, "inbox": outcome.inbox_id})
        case Refused():
            runtime.metrics.updates.count("refused")
            _log.info("refused a message on %s: %s", adapter.platform, outcome.reason)
    return outcome


async def _keep(runtime: Runtime, adapter: Adapter, update: Malformed) -> None:
    runtime.metrics.updates.count("malformed")
    # Without the reason, because the reason quotes the update. It is stored with the update.
    _log.warning("an update of %s could not be read; it is kept as it came", adapter.platform)
    await runtime.insist(
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
