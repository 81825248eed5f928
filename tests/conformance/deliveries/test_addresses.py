"""Addresses: dead ones are remembered, probed at growing intervals, and alive again after a delivery or a message."""

from keryx.clock import HOUR
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.tables import addresses
from keryx.core.deliveries.tables.addresses import KnownAddress
from keryx.store.database import Database
from keryx.testing.clock import FakeClock

CHAT = Address(platform="telegram", account="bot", chat_id="7")


async def look(database: Database) -> KnownAddress:
    known = await database.read(lambda tx: addresses.find_address(tx, CHAT))
    assert known is not None
    return known


async def test_an_address_is_unknown_until_its_first_message(database: Database, clock: FakeClock) -> None:
    assert await database.read(lambda tx: addresses.find_address(tx, CHAT)) is None
    await database.write(lambda tx: addresses.record_inbound(tx, CHAT))
    clock.advance(1)
    await database.write(lambda tx: addresses.record_inbound(tx, CHAT))
    known = await look(database)
    assert (known.address, known.last_inbound_at, known.dead_since_at) == (str(CHAT), clock.now(), None)


async def test_a_dead_address_is_probed_later_each_time(database: Database, clock: FakeClock) -> None:
    since = clock.now()
    for wait in (HOUR, 2 * HOUR, 4 * HOUR):
        await database.write(lambda tx: addresses.mark_dead(tx, CHAT, reason="blocked\0"))
        known = await look(database)
        assert (known.dead_since_at, known.reason, known.probe_at) == (
            since,
            "blocked\ufffd",
            clock.now() + wait,
        )
        clock.advance(wait)


async def test_an_address_is_alive_again_after_a_delivery_or_a_message(database: Database) -> None:
    await database.write(lambda tx: addresses.mark_dead(tx, CHAT, reason="gone"))
    await database.write(lambda tx: addresses.mark_alive(tx, CHAT))
    assert (await look(database)).dead_since_at is None
    await database.write(lambda tx: addresses.mark_dead(tx, CHAT, reason="gone"))
    await database.write(lambda tx: addresses.record_inbound(tx, CHAT))
    known = await look(database)
    assert (known.dead_since_at, known.reason, known.probes, known.probe_at) == (None, None, 0, None)
