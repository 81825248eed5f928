"""Failed turns: reported in the chat of the question, retried in order, without delaying others."""

import pytest

from keryx.clock import DAY, HOUR, MINUTE
from keryx.core.conversations.rules.message import NewMessage, TextPart, text_message
from keryx.core.conversations.tables import sessions
from keryx.core.deliveries.rules.route import ORIGIN, Address
from keryx.core.schedules import tables as schedules
from keryx.core.schedules.rules.plan import SchedulePlan
from keryx.core.schedules.transactions.fire_schedule import fire_schedule
from keryx.core.schedules.transactions.manage_schedule import Scheduled, create_schedule
from keryx.core.turns.rules.inbox import ATTEMPTS_MAX
from keryx.core.turns.rules.turn import UNKNOWN_RESULT
from keryx.core.turns.transactions.fail_turn import Failure, roll_back_turn, stop_turn
from keryx.store.database import Database
from keryx.testing.builders import dm, group
from keryx.testing.clock import FakeClock
from tests.conformance.acting import ask, call, fail, outputs, result, start
from tests.conformance.stage import Stage


@pytest.fixture
async def stage(database: Database, clock: FakeClock) -> Stage:
    stage = Stage(database=database, clock=clock)
    await stage.meet("ana")
    return stage


async def test_a_failure_is_reported_in_the_chat_of_the_question(stage: Stage) -> None:
    accepted = await stage.accept("one", source=group())
    begun = await stage.begin()
    partial = text_message("assistant", "The answer is")
    assert await fail(stage, begun, Failure(reason="the model is gone"), partial) == "failed"
    assert await stage.said() == [
        ("telegram:family", "I could not answer: the model is gone\n/retry tries again.")
    ]
    assert await stage.fate(accepted) == "failed"
    assert (await stage.item(accepted.inbox_id)).state == "dead"
    assert await stage.texts(accepted.session_id) == ["one", "The answer is"]
    turn = await stage.turn(begun)
    assert (turn.state, turn.reason) == ("failed", "the model is gone")


async def test_a_failure_may_be_reported_elsewhere_or_nowhere(stage: Stage) -> None:
    await stage.accept("one")
    to = [Address(platform="signal", chat_id="ops")]
    await fail(stage, await stage.begin(), Failure(reason="no", to=to))
    assert await stage.said("signal") == [("signal:ops", "I could not answer: no\n/retry tries again.")]
    assert await stage.said() == []


@pytest.mark.parametrize("end", ["again", "failed", "stopped", "rolled back"])
@pytest.mark.parametrize("text", ["The answer is", ""])
async def test_the_usage_of_a_discarded_answer_counts(stage: Stage, end: str, text: str) -> None:
    accepted = await stage.accept("one")
    begun = await stage.begin()
    parts = (TextPart(text=text),) if text else ()
    partial = NewMessage(role="assistant", parts=parts, input_tokens=900, output_tokens=4)
    if end in ("again", "failed"):
        retry_at = stage.clock.now() if end == "again" else None
        await fail(stage, begun, Failure(reason="cut", retry_at=retry_at), partial)
    elif end == "stopped":
        await stage.do(lambda tx: stop_turn(tx, begun.held, partial=partial))
    else:
        await stage.accept("!rollback two")
        await stage.do(lambda tx: roll_back_turn(tx, begun.held, partial=partial, ids=stage.ids))
    await stage.accept("/usage")
    told = (await stage.said())[-1][1].splitlines()
    used = "(an unknown model): 900 tokens in (0 cached), 4 out, no price known."
    assert told[:4] == [
        f"This conversation {used}",
        f"Its last turn {used}",
        "Tool calls in it: 0.",
        f"Today {used}",
    ]
    assert (await stage.texts(accepted.session_id))[1:] == (
        [text] if text and end in ("failed", "stopped") else []
    )


async def test_a_turn_knows_whether_the_attempt_before_it_failed(stage: Stage) -> None:
    await stage.accept("one")
    begun = await stage.begin()
    assert not begun.has_failed
    await stage.lose_holder()
    await stage.recover()
    again = await stage.begin()
    # A lost turn did not fail.
    assert not again.has_failed
    await fail(stage, again, Failure(reason="busy", retry_at=stage.clock.now()))
    again = await stage.begin()
    assert again.has_failed
    await fail(stage, again, Failure(reason="no"))
    await stage.accept("two")
    assert not (await stage.begin()).has_failed


async def test_a_retry_and_the_messages_behind_it_wait(stage: Stage) -> None:
    first = await stage.accept("one")
    begun = await stage.begin()
    await call(stage, begun, ("a", "idempotent"), ("b", "once"))
    await start(stage, begun, "b")
    retry_at = stage.clock.now() + MINUTE
    assert await fail(stage, begun, Failure(reason="busy", retry_at=retry_at)) == "again"
    assert await stage.said() == []
    second = await stage.accept("two")
    assert await stage.begin_if_any() is None
    # The item is delayed, so that other sessions are not.
    assert (await stage.item(second.inbox_id)).ready_at == retry_at
    stage.clock.advance(MINUTE)
    again = await stage.begin()
    assert ([item.id for item in again.answers], again.resumed) == ([first.inbox_id], True)
    assert outputs(await stage.transcript(first.session_id)) == [UNKNOWN_RESULT]
    await stage.finish(again, "1")
    await stage.finish(await stage.begin(), "2")
    assert [text for _, text in await stage.said()] == ["1", "2"]


async def test_an_interruption_does_not_wait_for_a_retry(stage: Stage) -> None:
    await stage.accept("one")
    begun = await stage.begin()
    await fail(stage, begun, Failure(reason="busy", retry_at=stage.clock.now() + DAY))
    await stage.accept("!stop two")
    assert len((await stage.begin()).answers) == 2


async def test_after_too_many_attempts_a_retry_is_a_failure(stage: Stage) -> None:
    accepted = await stage.accept("one")
    outcomes = []
    for _ in range(ATTEMPTS_MAX):
        begun = await stage.begin()
        outcomes.append(await fail(stage, begun, Failure(reason="busy", retry_at=stage.clock.now())))
    assert outcomes == ["again"] * (ATTEMPTS_MAX - 1) + ["failed"]
    assert await stage.fate(accepted) == "failed"
    assert [text for _, text in await stage.said()] == ["I could not answer: busy\n/retry tries again."]


async def test_eight_waiting_sessions_do_not_delay_a_ninth(stage: Stage) -> None:
    for number in range(8):
        await stage.meet(f"user{number}")
        await stage.accept(f"hello {number}", source=dm(f"user{number}"))
        begun = await stage.begin()
        await call(stage, begun, ("c", "ask"))
        await ask(stage, begun)
        await stage.accept(f"well? {number}", source=dm(f"user{number}"))
    accepted = await stage.accept("hello")
    assert (await stage.begin()).lease.session_id == accepted.session_id


async def test_counters_are_right_after_every_kind_of_end(stage: Stage) -> None:
    accepted = await stage.accept("one")
    session: sessions.Session | None = None
    for _ in range(2):
        begun = await stage.begin()
        await call(stage, begun, ("a", "pure"))
        await result(stage, begun, "a")
        await fail(stage, begun, Failure(reason="busy", retry_at=stage.clock.now()))
        session = await stage.session(accepted.session_id)
    assert session is not None
    assert (session.message_count, session.message_total, session.tool_call_count) == (5, 5, 2)


async def test_a_fire_has_the_outcome_of_its_turn(stage: Stage) -> None:
    ana = await stage.meet("hana")
    plan = SchedulePlan(name="tea", rule="every 1h", zone="UTC", parts=(TextPart(text="Tea?"),), route=ORIGIN)
    made = await stage.do(lambda tx: create_schedule(tx, plan, person_id=ana.id, origin=dm("hana")))
    assert isinstance(made, Scheduled)
    for outcome in ("finished", "failed", "stopped"):
        stage.clock.advance(HOUR)
        await stage.do(lambda tx: fire_schedule(tx, stage.ids, settings=stage.settings))
        begun = await stage.begin()
        assert begun.purpose == "schedule"
        if outcome == "finished":
            await stage.finish(begun, "Yes.")
        elif outcome == "failed":
            await fail(stage, begun, Failure(reason="no water"))
        else:
            await stage.do(lambda tx, begun=begun: stop_turn(tx, begun.held))  # type: ignore[misc]
        [newest, *_] = await stage.look(lambda tx: schedules.list_fires(tx, made.schedule.id, limit=9))
        assert newest.state == ("finished" if outcome == "finished" else "failed")
    facts = await stage.rows("SELECT subject FROM feed WHERE kind = 'fire'")
    assert facts == [(made.schedule.id,)] * 6
    said = [(each.kind, each.address) for each in await stage.deliveries()]
    assert said == [("scheduled", "telegram:hana")] * 2


async def test_a_turn_ends_without_its_deleted_fire(stage: Stage) -> None:
    ana = await stage.meet("hana")
    plan = SchedulePlan(name="tea", rule="every 1h", zone="UTC", parts=(TextPart(text="Tea?"),), route=ORIGIN)
    await stage.do(lambda tx: create_schedule(tx, plan, person_id=ana.id, origin=dm("hana")))
    stage.clock.advance(HOUR)
    await stage.do(lambda tx: fire_schedule(tx, stage.ids, settings=stage.settings))
    begun = await stage.begin()
    await stage.tamper("DELETE FROM fires")
    await stage.finish(begun, "Yes.")
    assert (await stage.turn(begun)).state == "finished"
