"""Wait until nothing is under way in a simulated world."""

import asyncio
from collections.abc import Collection

from keryx.clock import DAY
from keryx.core.deliveries.views.message_fates import count_unsettled, list_deliveries
from keryx.gateway.upkeep import EXPIRE_SECONDS
from keryx.testing.simulator.world import World

AFTER_THAW_SECONDS = 5.0
EXPIRED_AFTER_SECONDS = EXPIRE_SECONDS + 2.0
"""The longest time until a gateway notices that the time for an answer is over."""
ITEMS_MAX = 10_000


async def wait_until_idle(
    world: World, *, within_seconds: float = 3_000.0, but: Collection[str] = ()
) -> None:
    """Wait until no work is left, except deliveries to the chats in ``but``; a breach if that never happens.

    No person answers any more, so a day passes where a turn waits for an answer.
    """
    give_up_at = world.loop.time() + within_seconds
    thawed_at = -AFTER_THAW_SECONDS
    skipped_at = -EXPIRED_AFTER_SECONDS
    while world.loop.time() < give_up_at:
        await asyncio.sleep(2.0)
        if any(node.process.state == "frozen" for node in world.nodes):
            thawed_at = world.loop.time()
        elif world.loop.time() - thawed_at < AFTER_THAW_SECONDS or world.platform.has_unacknowledged:
            continue  # the acts of a gateway that comes back late must be seen
        elif not _count_unsettled(world, but):
            return
        elif world.turns_waiting and world.loop.time() - skipped_at >= EXPIRED_AFTER_SECONDS:
            world.clock.offset += DAY
            skipped_at = world.loop.time()
    world.breaches.append(f"{_count_unsettled(world, but)} items or deliveries never ended")


def _count_unsettled(world: World, but: Collection[str]) -> int:
    name = world.platform.name
    unsettled = world.call_store(world.real.read(lambda tx: count_unsettled(tx, platform=name)))
    if not but or not unsettled:
        return unsettled
    said = world.call_store(world.real.read(lambda tx: list_deliveries(tx, platform=name, limit=ITEMS_MAX)))
    return unsettled - sum(each.chat_id in but and each.state in ("ready", "sending") for each in said)
