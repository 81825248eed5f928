"""Intake: store each update of a platform, then acknowledge it.

Intake starts no turn: a turn starts because an inbox item exists. Intake stores a malformed update unchanged and
continues with the next one.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from keryx.core.people.rules.access import Refused
from keryx.core.turns.transactions.accept_message import Accepted, Duplicate, accept_message
from keryx.core.upkeep.transactions.keep_malformed import keep_malformed
from keryx.errors import InvalidValue
from keryx.gateway.runtime.log import log_of
from keryx.gateway.runtime.metrics import UpdateOutcome
from keryx.gateway.runtime.runtime import Runtime, cancel
from keryx.platforms.adapter import Adapter, Malformed, Update

_log = log_of("intake")


async def run_intake(
    runtime: Runtime, adapter: Adapter, *, opened: Callable[[], None] = lambda: None
) -> None:
    """Store and acknowledge what the adapter receives, in order, until it ends or fails.

    ``opened`` is called once the adapter is connected.
    """
    await adapter.connect()
    opened()
    filling_menu = asyncio.create_task(_fill_menu(runtime, adapter))
    try:
        async with aclosing(adapter.receive()) as updates:
            async for update in updates:
                outcome = await accept_update(runtime, adapter, update)
                await adapter.acknowledge(update, refused=outcome if isinstance(outcome, Refused) else None)
    finally:
        await cancel(filling_menu)


async def _fill_menu(runtime: Runtime, adapter: Adapter) -> None:
    """Fill the platform's command menu. Failures are logged and change nothing."""
    if not adapter.capabilities.has_menu:
        return
    try:
        await adapter.offer_commands(runtime.commands.commands)
    except Exception as error:  # noqa: BLE001 - a failure of the adapter only costs the menu
        _log.failed("the menu of %s could not be filled", adapter.platform, error=error)


async def accept_update(
    runtime: Runtime, adapter: Adapter, update: Update
) -> Accepted | Duplicate | Refused | None:
    """Store one update. Return when it is durable, however long the store is unavailable."""
    if isinstance(update, Malformed):
        await _keep(runtime, adapter, update)
        return None
    try:
        outcome = await runtime.write_with_retry(
            lambda tx: accept_message(
                tx, update, settings=runtime.settings, ids=runtime.ids, commands=runtime.commands
            ),
            what="intake",
        )
    except InvalidValue as error:
        await _keep(runtime, adapter, Malformed(ref=update.ref, raw=repr(update), reason=str(error)))
        return None
    if isinstance(outcome, Refused):
        runtime.metrics.updates["refused"] += 1
        _log.info("refused a message on %s: %s", adapter.platform, outcome.reason)
    else:
        kind: UpdateOutcome = "accepted" if isinstance(outcome, Accepted) else "duplicate"
        runtime.metrics.updates[kind] += 1
        _log.info(kind, extra={"session": outcome.session_id, "inbox": outcome.inbox_id})
    return outcome


async def _keep(runtime: Runtime, adapter: Adapter, update: Malformed) -> None:
    runtime.metrics.updates["malformed"] += 1
    # Without the reason, because the reason quotes the update. It is stored with the update.
    _log.warning("stored a malformed update of %s", adapter.platform)
    await runtime.write_with_retry(
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
