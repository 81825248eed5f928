"""Recovery after a crash: each turn and delivery once, and no second answer."""

import asyncio

import pytest

from keryx.clock import HOUR
from keryx.core.accounts.transactions import take_connector
from keryx.core.conversations.rules.message import ToolResultPart, text_message
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.transactions.append_message import append_message
from keryx.core.deliveries.tables import outbox
from keryx.core.deliveries.transactions.claim_deliveries import claim_deliveries
from keryx.core.turns.rules.inbox import ATTEMPTS_MAX
from keryx.core.turns.rules.lease import LEASE_TIME
from keryx.core.turns.rules.turn import UNKNOWN_RESULT
from keryx.core.turns.transactions.fail_turn import stop_session
from keryx.core.turns.transactions.record_step import record_calls, record_text, start_call
from keryx.core.upkeep.transactions.recover import BATCH, recover
from keryx.store.database import Database
from keryx.store.opening import open_database
from keryx.testing.builders import call_message, dm
from keryx.testing.clock import FakeClock
from tests.conformance.stage import Meanwhile, Stage


@pytest.fixture
async def stage(database: Database, clock: FakeClock) -> Stage:
    stage = Stage(database=database, clock=clock)
    await stage.meet("ana")
    return stage


async def test_a_store_without_a_crash_needs_no_recovery(stage: Stage) -> None:
    await stage.exchange("one")
    await stage.accept("two")
    await stage.begin()
    assert not await stage.recover()


async def test_a_turn_without_a_holder_is_lost_and_its_message_answered_once(stage: Stage) -> None:
    accepted = await stage.accept("one")
    lost = await stage.begin()
    await stage.lose_holder()
    assert await stage.begin_if_any() is None, "its turn is recovered first"
    recovered = await stage.recover()
    assert (recovered.turns, recovered.deliveries, bool(recovered)) == (1, 0, True)
    assert not await stage.recover()
    turn = await stage.turn(lost)
    assert (turn.state, turn.reason) == ("lost", "its holder was lost")
    await stage.finish(await stage.begin(), "1")
    assert await stage.texts(accepted.session_id) == ["one", "1"]
    assert await stage.said() == [("telegram:ana", "1")]


async def test_concurrent_recoveries_end_each_turn_once(stage: Stage) -> None:
    for number in range(3):
        await stage.meet(f"user{number}")
        await stage.accept(f"hello {number}", source=dm(f"user{number}"))
        await stage.begin()
    await stage.lose_holder()
    recovered = await asyncio.gather(*(stage.recover() for _ in range(4)))
    assert sum(each.turns for each in recovered) == 3


async def test_more_than_a_batch_is_recovered_in_several_calls(stage: Stage) -> None:
    for number in range(BATCH + 1):
        await stage.meet(f"user{number}")
        await stage.accept(f"hello {number}", source=dm(f"user{number}"))
        await stage.begin()
    await stage.lose_holder()
    assert [(await stage.recover()).turns for _ in range(3)] == [BATCH, 1, 0]


async def test_after_too_many_crashes_the_message_fails_visibly_with_the_text_so_far(stage: Stage) -> None:
    accepted = await stage.accept("one")
    for _ in range(ATTEMPTS_MAX):
        begun = await stage.begin()
        await stage.do(
            lambda tx, begun=begun: record_text(  # type: ignore[misc]
                tx, begun.held, start=0, text="The answer is"
            )
        )
        await stage.lose_holder()
        await stage.recover()
    assert await stage.begin_if_any() is None
    assert await stage.fate(accepted) == "failed"
    assert await stage.texts(accepted.session_id) == ["one", "The answer is"]
    [(address, text)] = await stage.said()
    assert address == "telegram:ana"
    assert text.startswith("I could not answer: Keryx stopped several times")


async def test_a_message_behind_a_lost_turn_keeps_its_place(stage: Stage) -> None:
    await stage.accept("one")
    await stage.begin()
    await stage.accept("two")
    await stage.lose_holder()
    await stage.recover()
    await stage.finish(await stage.begin(), "1")
    await stage.finish(await stage.begin(), "2")
    assert [text for _, text in await stage.said()] == ["1", "2"]


async def test_a_turn_that_was_asked_to_stop_stops_without_its_holder(stage: Stage) -> None:
    accepted = await stage.accept("one")
    begun = await stage.begin()
    await stage.do(lambda tx: record_text(tx, begun.held, start=0, text="Well"))
    await stage.do(lambda tx: stop_session(tx, accepted.session_id, holder="x"))
    await stage.lose_holder()
    assert (await stage.recover()).turns == 1
    assert (await stage.turn(begun)).state == "stopped"
    assert await stage.fate(accepted) == "cancelled"
    assert await stage.texts(accepted.session_id) == ["one", "Well"]
    assert await stage.begin_if_any() is None


async def test_a_turn_that_was_to_be_rolled_back_is_rolled_back_without_its_holder(stage: Stage) -> None:
    accepted = await stage.accept("one")
    begun = await stage.begin()
    message = call_message(("c", "pure"), text="Let me look.")
    await stage.do(lambda tx: record_calls(tx, begun.held, message=message, ids=stage.ids))
    await stage.accept("!rollback two")
    await stage.lose_holder()
    await stage.recover()
    await stage.finish(await stage.begin(), "both")
    assert await stage.texts(accepted.session_id) == ["one", "two", "both"]


async def test_a_started_call_is_unknown_after_the_last_attempt_too(stage: Stage) -> None:
    accepted = await stage.accept("one")
    begun = await stage.begin()
    message = call_message(("c", "once"))
    await stage.do(lambda tx: record_calls(tx, begun.held, message=message, ids=stage.ids))
    await stage.do(lambda tx: start_call(tx, begun.held, call_id="c"))
    for _ in range(ATTEMPTS_MAX):
        await stage.lose_holder()
        await stage.recover()
        await stage.begin_if_any()
    results = [
        part.output
        for said in await stage.transcript(accepted.session_id)
        for part in said.parts
        if isinstance(part, ToolResultPart)
    ]
    assert results == [UNKNOWN_RESULT]


async def test_a_holder_that_came_back_in_time_keeps_its_turn(stage: Stage, database: Database) -> None:
    accepted = await stage.accept("one")
    begun = await stage.begin()
    stage.clock.advance(LEASE_TIME)
    # The lease has expired, but another holder takes the session before the recovery.
    await stage.tamper("UPDATE sessions SET lease_holder = 'another', lease_expires_at = 99999999999999999")
    assert not await database.write(lambda tx: recover(tx, ids=stage.ids, settings=stage.settings))
    assert (await stage.turn(begun)).state == "running"
    assert await stage.fate(accepted) is None


async def test_a_program_that_appended_in_between_loses_nothing(stage: Stage) -> None:
    accepted = await stage.accept("one")
    await stage.begin()
    await stage.lose_holder()
    session = await stage.session(accepted.session_id)
    note = text_message("user", "by hand")
    await stage.do(lambda tx: append_message(tx, SessionId(session.id), note, person_id=session.owner_id))
    await stage.recover()
    await stage.finish(await stage.begin(), "both")
    assert await stage.texts(accepted.session_id) == ["one", "by hand", "both"]


async def test_a_delivery_whose_sender_is_gone_is_marked_as_possibly_repeated(stage: Stage) -> None:
    await stage.exchange("one")
    connector = await stage.do(lambda tx: take_connector(tx, platform="telegram", account="", holder="g"))
    assert connector is not None
    await stage.do(lambda tx: claim_deliveries(tx, connector))
    assert not await stage.recover()
    stage.clock.advance(LEASE_TIME)
    assert (await stage.recover()).deliveries == 1
    [delivery] = await stage.deliveries()
    assert (delivery.state, delivery.maybe_repeated_at) == ("ready", stage.clock.now())


async def test_where_the_platform_deduplicates_a_resend_needs_no_mark(stage: Stage) -> None:
    await stage.exchange("one")
    connector = await stage.do(lambda tx: take_connector(tx, platform="telegram", account="", holder="g"))
    assert connector is not None
    await stage.do(lambda tx: claim_deliveries(tx, connector))
    stage.clock.advance(HOUR)
    await stage.recover(deduplicating=frozenset({"telegram"}))
    [delivery] = await stage.deliveries()
    assert (delivery.state, delivery.maybe_repeated_at) == ("ready", None)


async def test_a_turn_that_another_gateway_recovered_meanwhile_is_skipped(
    postgres_url: str, clock: FakeClock
) -> None:
    meanwhile = Meanwhile("sessions.lock")
    slow = Stage(database=open_database(postgres_url, clock=clock, hook=meanwhile), clock=clock)
    fast = Stage(database=open_database(postgres_url, clock=clock), clock=clock)
    await slow.meet("ana")
    await slow.exchange("one")
    connector = await slow.do(lambda tx: take_connector(tx, platform="telegram", account="", holder="g"))
    assert connector is not None
    await slow.do(lambda tx: claim_deliveries(tx, connector))
    stuck = await slow.look(lambda tx: outbox.list_due(tx, platform="telegram", account="", limit=9))
    assert stuck == []
    clock.advance(LEASE_TIME)
    meanwhile.work = fast.recover
    assert (await slow.recover()).deliveries == 0
    await slow.accept("two")
    await slow.begin()
    clock.advance(LEASE_TIME)
    meanwhile.work = fast.recover
    assert (await slow.recover()).turns == 0
    for stage in (slow, fast):
        await stage.database.close()
