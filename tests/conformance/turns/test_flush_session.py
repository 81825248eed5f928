"""The flush before a session expires: once for each state, silent, and giving way to everything else."""

import asyncio

import pytest

from keryx.clock import HOUR, MINUTE, SECOND
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.session_key import SessionKey
from keryx.core.conversations.tables import session_keys
from keryx.core.conversations.transactions.branch_session import undo
from keryx.core.conversations.transactions.open_session import open_session
from keryx.core.conversations.transactions.session_guard import Actor
from keryx.core.people.tables import people
from keryx.core.processes.transactions.record_process import NewProcess, record_end, record_started
from keryx.core.turns.rules.inbox import ATTEMPTS_MAX
from keryx.core.turns.rules.reset import ResetPolicies, ResetPolicy
from keryx.core.turns.transactions.begin_turn import BegunTurn
from keryx.core.turns.transactions.fail_turn import Failure, fail_turn, stop_session
from keryx.core.turns.transactions.flush_session import flush_session, give_way
from keryx.core.turns.transactions.record_step import record_calls
from keryx.core.turns.views.expiring_sessions import FLUSHING_MAX, PAGE, list_expiring, reset_due
from keryx.errors import LeaseLost
from keryx.store.database import Database, Tx
from keryx.testing.builders import call_message, dm, group
from keryx.testing.clock import FakeClock
from tests.conformance.stage import Stage

HOURLY = ResetPolicies(default=ResetPolicy(mode="idle", idle_minutes=60))


@pytest.fixture
async def stage(database: Database, clock: FakeClock) -> Stage:
    stage = Stage(database=database, clock=clock)
    stage.set(reset=HOURLY)
    await stage.meet("ana")
    return stage


async def expiring(stage: Stage) -> list[SessionId]:
    return await stage.look(lambda tx: list_expiring(tx, stage.settings.reset))


async def flush(stage: Stage, session_id: SessionId) -> int | None:
    return await stage.do(lambda tx: flush_session(tx, session_id, settings=stage.settings))


async def quiet(stage: Stage, text: str = "I like tea") -> SessionId:
    """Return a session that expires in less than ten minutes."""
    session_id = await stage.exchange(text)
    stage.clock.advance(50 * MINUTE + 1)
    return session_id


async def begin_flush(stage: Stage, session_id: SessionId) -> BegunTurn:
    assert await flush(stage, session_id) is not None
    begun = await stage.begin(holder="flusher")
    assert begun.purpose == "flush"
    return begun


async def test_a_session_is_flushed_ten_minutes_before_it_expires(stage: Stage) -> None:
    session_id = await stage.exchange("I like tea")
    stage.clock.advance(50 * MINUTE)
    assert await expiring(stage) == []
    assert await flush(stage, session_id) is None
    stage.clock.advance(1)
    assert await expiring(stage) == [session_id]
    assert await flush(stage, session_id) is not None


async def test_a_flush_has_no_message_no_reply_and_is_no_activity(stage: Stage) -> None:
    session_id = await quiet(stage)
    before, said = await stage.session(session_id), await stage.said()
    begun = await begin_flush(stage, session_id)
    message = call_message(("c", "once"))
    await stage.do(lambda tx: record_calls(tx, begun.held, message=message, ids=stage.ids))
    await stage.finish(begun, "noted")
    after = await stage.session(session_id)
    assert after.last_active_at == before.last_active_at
    assert await stage.said() == said
    assert (await stage.texts(session_id)) == ["I like tea", "yes", "noted"]
    assert after.flushed_seq == after.last_seq
    assert (await stage.turn(begun)).state == "finished"
    [item] = begun.answers
    assert (await stage.item(item.id)).fate == "answered"


async def test_a_session_is_flushed_again_only_after_another_message(stage: Stage) -> None:
    session_id = await quiet(stage)
    assert await expiring(stage) == [session_id]
    begun = await begin_flush(stage, session_id)
    assert await expiring(stage) == []
    await stage.finish(begun, None)
    assert (await expiring(stage), await flush(stage, session_id)) == ([], None)
    await quiet(stage, "and coffee")
    assert await expiring(stage) == [session_id]
    await stage.finish(await begin_flush(stage, session_id), None)
    assert await expiring(stage) == []


async def test_a_process_that_pins_a_session_postpones_the_reset_and_the_flush(stage: Stage) -> None:
    session_id = await quiet(stage)
    session = await stage.session(session_id)
    build = NewProcess(command="make", workspace=None)
    process_id = await stage.do(
        lambda tx: record_started(tx, build, session_id=session_id, person_id=session.owner_id)
    )
    stage.clock.advance(HOUR)
    assert (await expiring(stage), await flush(stage, session_id)) == ([], None)
    hourly = HOURLY.default
    assert await stage.look(lambda tx: reset_due(tx, session, policy=hourly)) is None
    await stage.do(lambda tx: record_end(tx, process_id, "killed"))
    assert await expiring(stage) == [session_id]
    assert await stage.look(lambda tx: reset_due(tx, session, policy=hourly)) == "idle"
    accepted = await stage.accept("good morning")
    assert (accepted.opened, accepted.reset) == (True, "idle")


async def test_several_gateways_request_one_flush(stage: Stage) -> None:
    session_id = await quiet(stage)
    asks = [
        stage.database.write(lambda tx: flush_session(tx, session_id, settings=stage.settings))
        for _ in range(8)
    ]
    made = await asyncio.gather(*asks)
    assert len([inbox_id for inbox_id in made if inbox_id is not None]) == 1
    await stage.check()


async def test_a_message_takes_the_session_from_a_running_flush_of_any_gateway(stage: Stage) -> None:
    session_id = await quiet(stage)
    flushing = await begin_flush(stage, session_id)
    accepted = await stage.accept("and coffee")
    assert (accepted.session_id, accepted.reset) == (session_id, None)
    answering = await stage.begin()
    assert [item.id for item in answering.answers] == [accepted.inbox_id]
    with pytest.raises(LeaseLost):
        await stage.finish(flushing, "too late")
    await stage.finish(answering, "noted")
    assert (await stage.turn(flushing)).state == "stopped"
    assert await stage.texts(session_id) == ["I like tea", "yes", "and coffee", "noted"]
    stage.clock.advance(50 * MINUTE + 1)
    assert await expiring(stage) == [session_id], "later messages are flushed in their time"


async def test_a_message_that_steers_or_rolls_back_does_not_wait_for_a_flush_either(stage: Stage) -> None:
    session_id = await quiet(stage)
    for text in ("!steer a", "!rollback b", "!interrupt c"):
        flushing = await begin_flush(stage, session_id)
        accepted = await stage.accept(text)
        answering = await stage.begin()
        assert [item.id for item in answering.answers] == [accepted.inbox_id]
        assert (await stage.turn(flushing)).state == "stopped"
        await stage.finish(answering)
        stage.clock.advance(50 * MINUTE + 1)
    assert "cannot be taken back" not in str(await stage.said())


async def test_a_message_after_the_expiry_opens_the_next_session_while_the_old_one_is_flushed(
    stage: Stage,
) -> None:
    session_id = await stage.exchange("I like tea")
    stage.clock.advance(HOUR - 5 * SECOND)
    flushing = await begin_flush(stage, session_id)
    stage.clock.advance(10 * SECOND)
    accepted = await stage.accept("good morning")
    assert accepted.reset == "idle"
    answering = await stage.begin()
    assert answering.lease.session_id == accepted.session_id != session_id
    await stage.finish(flushing, "noted late")
    await stage.finish(answering)
    assert (await stage.session(session_id)).close_reason == "reset"


async def test_a_waiting_flush_does_not_postpone_the_reset_and_runs_in_the_old_session(stage: Stage) -> None:
    session_id = await quiet(stage)
    inbox_id = await flush(stage, session_id)
    assert inbox_id is not None
    stage.clock.advance(10 * MINUTE)
    accepted = await stage.accept("good morning")
    assert accepted.reset == "idle"
    begun = {turn.lease.session_id: turn for turn in [await stage.begin(), await stage.begin()]}
    assert begun[session_id].purpose == "flush"
    assert begun[accepted.session_id].purpose == "reply"


async def test_a_waiting_flush_is_cancelled_by_a_message(stage: Stage) -> None:
    session_id = await quiet(stage)
    inbox_id = await flush(stage, session_id)
    assert inbox_id is not None
    accepted = await stage.accept("and coffee")
    begun = await stage.begin()
    assert [item.id for item in begun.answers] == [accepted.inbox_id]
    await stage.finish(begun)
    item = await stage.item(inbox_id)
    assert (item.fate, item.fate_note) == ("cancelled", "another item came first")
    assert await stage.begin_if_any() is None


async def fail(stage: Stage, begun: BegunTurn) -> None:
    failure = Failure(reason="the provider is away", retry_at=stage.clock.now())
    await stage.do(lambda tx: fail_turn(tx, begun.held, failure=failure, ids=stage.ids))


async def test_a_failed_flush_is_retried_and_does_not_block_the_reset(stage: Stage) -> None:
    session_id = await quiet(stage)
    said = await stage.said()
    begun = await begin_flush(stage, session_id)
    for _ in range(ATTEMPTS_MAX - 1):
        await fail(stage, begun)
        begun = await stage.begin()
    await fail(stage, begun)
    ended = await stage.item(begun.answers[0].id)
    assert (ended.fate, ended.fate_note) == ("failed", "the provider is away")
    assert ((await stage.turn(begun)).state, await stage.said()) == ("failed", said)
    assert (await expiring(stage), await flush(stage, session_id)) == ([], None)
    stage.clock.advance(10 * MINUTE)
    assert (await stage.accept("good morning")).reset == "idle"


async def test_a_flush_of_a_killed_gateway_is_recovered(stage: Stage) -> None:
    session_id = await quiet(stage)
    lost = await begin_flush(stage, session_id)
    await stage.lose_holder()
    assert (await stage.recover()).turns == 1
    again = await stage.begin()
    assert (again.purpose, again.answers[0].id) == ("flush", lost.answers[0].id)
    await stage.finish(again, None)
    assert await expiring(stage) == []


async def test_a_flush_that_a_person_stopped_is_not_repeated(stage: Stage) -> None:
    session_id = await quiet(stage)
    begun = await begin_flush(stage, session_id)
    await stage.accept("/stop")
    assert (await stage.turn(begun)).stop_requested_at is not None
    await stage.do(lambda tx: give_way(tx, session_id))
    assert (await expiring(stage), await flush(stage, session_id)) == ([], None)
    assert not await stage.do(lambda tx: give_way(tx, session_id))
    assert await stage.do(lambda tx: stop_session(tx, session_id, holder="h")) == "idle"


async def test_undo_does_not_wait_for_a_flush(stage: Stage) -> None:
    session_id = await quiet(stage)
    begun = await begin_flush(stage, session_id)
    owner_id = (await stage.session(session_id)).owner_id
    await stage.do(lambda tx: undo(tx, session_id, actor=Actor(person_id=owner_id, give_way=give_way)))
    assert (await stage.turn(begun)).state == "stopped"
    assert await stage.texts(session_id) == []


async def test_a_cancelled_flush_is_not_requested_again_for_the_same_state(stage: Stage) -> None:
    session_id = await quiet(stage)
    assert await flush(stage, session_id) is not None
    assert await flush(stage, session_id) is None
    await stage.tamper(
        "UPDATE inbox SET state = 'done', fate = 'cancelled', ended_at = 1 WHERE state = 'ready'"
    )
    assert await expiring(stage) == [session_id]
    assert await flush(stage, session_id) is None
    assert await expiring(stage) == []


async def test_a_session_with_open_work_is_not_flushed(stage: Stage) -> None:
    session_id = await quiet(stage)
    await begin_flush(stage, session_id)
    assert (await expiring(stage), await flush(stage, session_id)) == ([], None)
    await stage.accept("hold on")
    assert (await expiring(stage), await flush(stage, session_id)) == ([], None)


async def test_closed_and_unreachable_sessions_are_not_flushed(stage: Stage) -> None:
    closed = await stage.exchange("one")
    await stage.accept("/new")
    unreachable = await stage.exchange("two", source=group())
    await stage.do(lambda tx: session_keys.remove_keys(tx, unreachable))
    stage.clock.advance(55 * MINUTE)
    assert await expiring(stage) == []
    assert (await flush(stage, closed), await flush(stage, unreachable)) == (None, None)


async def test_without_a_policy_no_session_is_flushed(stage: Stage) -> None:
    await quiet(stage)
    stage.set(reset=ResetPolicies())
    assert await expiring(stage) == []


async def test_the_number_of_concurrent_flushes_is_bounded(stage: Stage) -> None:
    users = [f"user-{number}" for number in range(FLUSHING_MAX + 2)]
    for user in users:
        await stage.meet(user)
        await stage.exchange(f"hello of {user}", source=dm(user))
    stage.clock.advance(55 * MINUTE)
    first = await expiring(stage)
    assert len(first) == FLUSHING_MAX
    for session_id in first:
        assert await flush(stage, session_id) is not None
    assert await expiring(stage) == []
    await stage.finish(await stage.begin(), None)
    assert len(await expiring(stage)) == 1


async def test_a_session_is_flushed_by_its_own_policy(stage: Stage) -> None:
    """More than a page of others were last active at the same time, and do not expire before the night."""
    hourly = ResetPolicy(mode="idle", idle_minutes=60)
    stage.set(reset=ResetPolicies(default=ResetPolicy(mode="daily"), by_place={(None, "group"): hourly}))

    def open_many(tx: Tx) -> None:
        ana = people.ensure_owner(tx)
        for number in range(PAGE + 1):
            key = SessionKey(f"agent:main:telegram:dm:{number}")
            open_session(tx, stage.ids, source=dm(str(number)), owner=ana, key=key)

    await stage.do(open_many)
    expected = await stage.exchange("now", source=group())
    await stage.tamper("UPDATE sessions SET last_seq = 2")
    stage.clock.advance(50 * MINUTE + 1)
    assert await expiring(stage) == [expected]


async def test_a_resumed_session_is_flushed_before_it_expires_again(stage: Stage) -> None:
    session_id = await stage.exchange("I like tea")
    stage.clock.advance(60 * MINUTE + 1)
    await stage.accept("/new")
    await stage.accept("/resume tea")
    assert (await expiring(stage), await flush(stage, session_id)) == ([], None)
    stage.clock.advance(50 * MINUTE)
    assert (await expiring(stage), await flush(stage, session_id)) == ([], None)
    stage.clock.advance(1)
    assert await expiring(stage) == [session_id]
    assert await flush(stage, session_id) is not None


async def test_a_session_that_expired_long_ago_is_flushed_after_it_was_resumed(stage: Stage) -> None:
    session_id = await stage.exchange("I like tea")
    stage.clock.advance(3 * 24 * HOUR)
    await stage.accept("/new")
    await stage.accept("/resume tea")
    stage.clock.advance(50 * MINUTE + 1)
    assert await expiring(stage) == [session_id]
    await stage.finish(await begin_flush(stage, session_id), None)
    assert await expiring(stage) == []
