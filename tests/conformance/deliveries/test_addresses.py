"""Addresses: dead ones are remembered, probed ever later, and alive again when something gets through."""

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


async def test_an_address_is_unknown_until_somebody_speaks_there(
    database: Database, clock: FakeClock
) -> None:
    assert await database.read(lambda tx: addresses.find_address(tx, CHAT)) is None
    await database.write(lambda tx: addresses.note_inbound(tx, CHAT))
    clock.advance(1)
    await database.write(lambda tx: addresses.note_inbound(tx, CHAT))
    known = await look(database)
    assert (known.address, known.last_inbound_at, known.dead_since_at) == (str(CHAT), clock.now(), None)


async def test_a_dead_address_is_probed_later_each_time(database: Database, clock: FakeClock) -> None:
    since = clock.now()
    for wait in (HOUR, 2 * HOUR, 4 * HOUR):
        await database.write(lambda tx: addresses.note_dead(tx, CHAT, reason="blocked\0"))
        known = await look(database)
        assert (known.dead_since_at, known.reason, known.probe_at) == (
            since,
            "blocked\ufffd",
            clock.now() + wait,
        )
        clock.advance(wait)


async def test_an_address_lives_again_when_something_arrives_or_somebody_speaks(database: Database) -> None:
    await database.write(lambda tx: addresses.note_dead(tx, CHAT, reason="gone"))
    assert await database.write(lambda tx: addresses.note_alive(tx, CHAT))
    assert not await database.write(lambda tx: addresses.note_alive(tx, CHAT))
    await database.write(lambda tx: addresses.note_dead(tx, CHAT, reason="gone"))
    await database.write(lambda tx: addresses.note_inbound(tx, CHAT))
    known = await look(database)
    assert (known.dead_since_at, known.reason, known.probes, known.probe_at) == (None, None, 0, None)
