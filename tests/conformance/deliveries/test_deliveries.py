"""Deliveries: one sender for each account, in order at each address, and unknown outcomes are marked."""

import asyncio

import pytest

from keryx.clock import HOUR, SECOND
from keryx.core.accounts.transactions import Connector, release_connector, take_connector
from keryx.core.conversations.rules.message import TextPart
from keryx.core.deliveries.rules.delivery import ATTEMPTS_MAX, Outcome, Rejected, Sent, Unknown
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.tables import addresses, outbox
from keryx.core.deliveries.transactions.claim_deliveries import claim_deliveries, record_delivery
from keryx.core.turns.rules.lease import LEASE_TIME
from keryx.errors import NotFound
from keryx.store.database import Database
from keryx.testing.builders import dm, group
from keryx.testing.clock import FakeClock
from tests.conformance.stage import Stage


@pytest.fixture
async def stage(database: Database, clock: FakeClock) -> Stage:
    stage = Stage(database=database, clock=clock)
    await stage.meet("ana")
    return stage


async def connect(stage: Stage, holder: str = "gateway", *, account: str = "") -> Connector:
    connector = await try_connect(stage, holder, account=account)
    assert connector is not None
    return connector


async def try_connect(stage: Stage, holder: str = "gateway", *, account: str = "") -> Connector | None:
    return await stage.do(lambda tx: take_connector(tx, platform="telegram", account=account, holder=holder))


async def claim(stage: Stage, connector: Connector) -> list[outbox.Delivery]:
    return await stage.do(lambda tx: claim_deliveries(tx, connector))


async def record(
    stage: Stage,
    connector: Connector,
    delivery: outbox.Delivery,
    outcome: Outcome,
    *,
    deduplicates: bool = False,
) -> bool:
    return await stage.do(
        lambda tx: record_delivery(tx, connector, delivery.id, outcome, deduplicates=deduplicates)
    )


async def delivery_now(stage: Stage, delivery: outbox.Delivery) -> outbox.Delivery:
    return await stage.look(lambda tx: outbox.get_delivery(tx, delivery.id))


async def test_deliveries_of_a_claim_whose_result_was_lost_are_returned_again(stage: Stage) -> None:
    await stage.exchange("hello")
    connector = await connect(stage)
    [lost] = await claim(stage, connector)
    [again] = await stage.do(lambda tx: claim_deliveries(tx, connector, known=frozenset()))
    assert again == lost
    assert await stage.do(lambda tx: claim_deliveries(tx, connector, known={again.id})) == []
    assert await record(stage, connector, again, Sent(message_id="900"))
    assert await stage.do(lambda tx: claim_deliveries(tx, connector, known=frozenset())) == []


async def test_a_reply_is_sent_once_and_keeps_the_platforms_id(stage: Stage) -> None:
    await stage.exchange("hello")
    connector = await connect(stage)
    [delivery] = await claim(stage, connector)
    assert (delivery.state, delivery.attempts, delivery.to) == ("sending", 1, Address.of(dm()))
    assert delivery.parts == (TextPart(text="yes"),)
    assert await claim(stage, connector) == []
    assert await record(stage, connector, delivery, Sent(message_id="900"))
    sent = await delivery_now(stage, delivery)
    assert (sent.state, sent.platform_message_id, sent.claimed_by) == ("sent", "900", None)
    assert not await record(stage, connector, delivery, Sent(message_id="901"))
    assert await claim(stage, connector) == []


async def test_an_unknown_delivery_is_not_found(stage: Stage) -> None:
    with pytest.raises(NotFound):
        await stage.look(lambda tx: outbox.get_delivery(tx, 999))


async def test_deliveries_to_one_address_are_sent_in_order(stage: Stage) -> None:
    for text in ("one", "two"):
        await stage.exchange(text, f"re {text}")
    await stage.exchange("three", "re three", source=group())
    connector = await connect(stage)
    first, elsewhere = await claim(stage, connector)
    assert (first.address, elsewhere.address) == ("telegram:ana", "telegram:family")
    assert await claim(stage, connector) == []
    # One that has to wait holds up those behind it: order goes before speed.
    await record(stage, connector, first, Rejected(reason="slow down", retry_after=5 * SECOND))
    assert await claim(stage, connector) == []
    stage.clock.advance(5 * SECOND - 1)
    assert await claim(stage, connector) == []
    stage.clock.advance(1)
    [again] = await claim(stage, connector)
    assert (again.id, again.attempts, again.maybe_repeated_at) == (first.id, 2, None)
    await record(stage, connector, again, Sent(message_id=None))
    [second] = await claim(stage, connector)
    assert second.parts == (TextPart(text="re two"),)


async def test_only_the_holder_of_an_account_sends_for_it(stage: Stage) -> None:
    await stage.exchange("hello")
    connector = await connect(stage, "one")
    assert await try_connect(stage, "two") is None
    assert await connect(stage, "one") == connector
    assert (await connect(stage, "two", account="second bot")).epoch == 1
    stage.clock.advance(LEASE_TIME)
    assert await claim(stage, connector) == []
    other = await connect(stage, "two")
    assert other.epoch == connector.epoch + 1
    assert await claim(stage, connector) == []
    assert len(await claim(stage, other)) == 1
    assert await try_connect(stage, "one") is None


async def test_a_released_account_is_free_at_once(stage: Stage) -> None:
    first = await connect(stage, "one")
    await stage.do(lambda tx: release_connector(tx, first))
    second = await connect(stage, "two")
    await stage.do(lambda tx: release_connector(tx, first))
    assert await try_connect(stage, "one") is None
    assert second.epoch == first.epoch + 1


async def test_racing_senders_send_each_delivery_once(stage: Stage) -> None:
    for number in range(6):
        await stage.meet(f"user{number}")
        await stage.exchange(f"hello {number}", source=dm(f"user{number}"))
    connector = await connect(stage)
    claimed = await asyncio.gather(*(claim(stage, connector) for _ in range(6)))
    ids = [delivery.id for batch in claimed for delivery in batch]
    assert len(ids) == len(set(ids)) == 6


async def test_a_delivery_without_a_receipt_is_sent_again_and_marked(stage: Stage) -> None:
    await stage.exchange("hello")
    connector = await connect(stage)
    [delivery] = await claim(stage, connector)
    await record(stage, connector, delivery, Unknown())
    waiting = await delivery_now(stage, delivery)
    assert (waiting.state, waiting.maybe_repeated_at) == ("ready", stage.clock.now())
    marked_at = waiting.maybe_repeated_at
    stage.clock.advance(HOUR)
    connector = await connect(stage)
    [again] = await claim(stage, connector)
    assert (again.maybe_repeated_at, again.idempotency_key) == (marked_at, delivery.idempotency_key)
    await record(stage, connector, again, Unknown())
    assert (await delivery_now(stage, again)).maybe_repeated_at == marked_at


async def test_a_repetition_needs_no_mark_if_the_platform_deduplicates(stage: Stage) -> None:
    await stage.exchange("hello")
    connector = await connect(stage)
    [delivery] = await claim(stage, connector)
    await record(stage, connector, delivery, Unknown(), deduplicates=True)
    assert (await delivery_now(stage, delivery)).maybe_repeated_at is None


async def test_a_delivery_that_stays_unknown_ends_as_unknown(stage: Stage) -> None:
    await stage.exchange("hello")
    for _ in range(ATTEMPTS_MAX):
        connector = await connect(stage)
        [delivery] = await claim(stage, connector)
        await record(stage, connector, delivery, Unknown())
        stage.clock.advance(HOUR)
    assert [each.state for each in await stage.deliveries()] == ["unknown"]
    assert await claim(stage, await connect(stage)) == []


async def test_the_result_of_a_gateway_that_lost_the_account_is_dropped(stage: Stage) -> None:
    await stage.exchange("hello")
    late = await connect(stage, "late")
    [delivery] = await claim(stage, late)
    stage.clock.advance(LEASE_TIME)
    assert (await stage.recover()).deliveries == 1
    assert (await delivery_now(stage, delivery)).state == "ready"
    assert not await record(stage, late, delivery, Sent(message_id="1"))
    stage.clock.advance(HOUR)
    other = await connect(stage, "other")
    [again] = await claim(stage, other)
    assert not await record(stage, late, delivery, Sent(message_id="1"))
    assert await record(stage, other, again, Sent(message_id="2"))
    sent = await delivery_now(stage, delivery)
    assert sent.platform_message_id == "2"
    assert sent.maybe_repeated_at is not None


async def test_an_attempt_is_settled_once_by_the_first_result(stage: Stage) -> None:
    await stage.exchange("hello")
    connector = await connect(stage)
    [delivery] = await claim(stage, connector)
    stage.clock.advance(LEASE_TIME)
    outcomes = await asyncio.gather(
        *(record(stage, connector, delivery, Sent(message_id=str(number))) for number in range(3)),
        stage.recover(),
    )
    settled = [outcome for outcome in outcomes[:-1] if outcome] + [outcomes[-1]] * bool(outcomes[-1])
    assert len(settled) == 1


async def test_a_permanent_rejection_ends_a_delivery(stage: Stage) -> None:
    await stage.exchange("hello")
    connector = await connect(stage)
    [delivery] = await claim(stage, connector)
    await record(stage, connector, delivery, Rejected(reason="too long\x00", permanent=True))
    rejected = await delivery_now(stage, delivery)
    assert (rejected.state, rejected.error) == ("rejected", "too long\ufffd")
    known = await stage.look(lambda tx: addresses.find_address(tx, delivery.to))
    assert known is not None
    assert known.dead_since_at is None


async def test_a_dead_address_is_remembered_and_probed_later_each_time(stage: Stage) -> None:
    gone = Rejected(reason="the chat is gone", dead_address=True)
    for number in range(3):
        await stage.exchange(f"message {number}")
    connector = await connect(stage)
    [delivery] = await claim(stage, connector)
    await record(stage, connector, delivery, gone)
    assert (await delivery_now(stage, delivery)).state == "dead"
    assert await claim(stage, connector) == []
    stage.clock.advance(HOUR)
    connector = await connect(stage)
    [probe] = await claim(stage, connector)
    await record(stage, connector, probe, gone)
    stage.clock.advance(HOUR)
    assert await claim(stage, await connect(stage)) == []
    stage.clock.advance(HOUR)
    connector = await connect(stage)
    [probe] = await claim(stage, connector)
    await record(stage, connector, probe, Sent(message_id="1"))
    known = await stage.look(lambda tx: addresses.find_address(tx, delivery.to))
    assert known is not None
    assert (known.dead_since_at, known.probes) == (None, 0)


async def test_a_delivery_without_a_session_is_sent(stage: Stage) -> None:
    stage.set(pairing_platforms=frozenset({"telegram"}))
    await stage.hear("let me in", source=dm("stranger"))
    connector = await connect(stage)
    [delivery] = await claim(stage, connector)
    assert delivery.session_id is None
    assert await record(stage, connector, delivery, Sent(message_id="1"))


async def test_a_reply_of_one_turn_is_queued_once_for_an_address(stage: Stage) -> None:
    await stage.accept("hello")
    begun = await stage.begin()
    await stage.finish(begun)
    [delivery] = await stage.deliveries()
    again = await stage.do(
        lambda tx: outbox.add_delivery(
            tx,
            delivery.parts,
            to=delivery.to,
            key="another",
            kind="reply",
            session_id=delivery.session_id,
            turn_id=begun.turn_id,
        )
    )
    assert again is None
