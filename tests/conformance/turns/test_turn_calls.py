"""Calls of a turn: stored before they start, started once, with one result each, and approvals."""

import asyncio

import pytest

from keryx.clock import MINUTE
from keryx.core.approvals.transactions.decide_approval import decide_approval
from keryx.core.conversations.rules.message import text_message
from keryx.core.conversations.transactions.append_message import Appended
from keryx.core.conversations.transactions.branch_session import undo
from keryx.core.conversations.transactions.session_guard import Actor
from keryx.core.turns.rules.inbox import ATTEMPTS_MAX
from keryx.core.turns.rules.turn import UNKNOWN_RESULT
from keryx.core.turns.tables import leases, turns
from keryx.core.turns.transactions.begin_turn import BegunTurn, begin_turn
from keryx.core.turns.transactions.fail_turn import Failure, stop_session
from keryx.core.turns.transactions.flush_session import give_way
from keryx.core.turns.transactions.record_step import (
    NO_RESULT,
    NOT_RUN,
    CallAlreadyEnded,
    NotStarted,
    Started,
    record_result,
    record_text,
)
from keryx.errors import InvalidValue, NotFound
from keryx.store.database import Database, Tx
from keryx.testing.builders import dm
from keryx.testing.clock import FakeClock
from tests.conformance.acting import ask, call, fail, outputs, result, start
from tests.conformance.stage import Stage


@pytest.fixture
async def stage(database: Database, clock: FakeClock) -> Stage:
    stage = Stage(database=database, clock=clock)
    await stage.meet("ana")
    return stage


async def test_all_calls_of_a_message_are_stored_before_any_starts(stage: Stage) -> None:
    session_id = (await stage.accept("one")).session_id
    begun = await stage.begin()
    appended = await call(stage, begun, ("a", "pure"), ("b", "idempotent"), ("c", None))
    steps = await stage.look(lambda tx: turns.list_steps(tx, begun.turn_id))
    assert [(step.call_id, step.effect, step.state, step.no) for step in steps] == [
        ("a", "pure", "called", 1),
        ("b", "idempotent", "called", 2),
        ("c", "once", "called", 3),
    ]
    assert {step.call_seq for step in steps} == {appended.seq}
    session = await stage.session(session_id)
    assert (session.tool_call_count, session.input_tokens, session.output_tokens, session.cost_micros) == (
        3,
        7,
        3,
        11,
    )


async def test_a_call_id_is_used_once_in_a_turn(stage: Stage) -> None:
    await stage.accept("one")
    begun = await stage.begin()
    await call(stage, begun, ("a", "pure"))
    with pytest.raises(InvalidValue, match="give each call its own"):
        await call(stage, begun, ("a", "pure"))


async def test_a_call_gets_one_result(stage: Stage) -> None:
    session_id = (await stage.accept("one")).session_id
    begun = await stage.begin()
    await call(stage, begun, ("a", "once"))
    assert isinstance(await start(stage, begun, "a"), Started)
    assert isinstance(await start(stage, begun, "a"), NotStarted)
    assert isinstance(await result(stage, begun, "a"), Appended)
    assert isinstance(await result(stage, begun, "a"), CallAlreadyEnded)
    assert isinstance(await start(stage, begun, "a"), NotStarted)
    assert outputs(await stage.transcript(session_id)) == ["done"]
    with pytest.raises(NotFound):
        await result(stage, begun, "never called")
    bad = text_message("assistant", "no result")
    with pytest.raises(InvalidValue):
        await stage.do(lambda tx: record_result(tx, begun.held, result=bad))


async def test_of_two_concurrent_results_one_is_stored(stage: Stage) -> None:
    await stage.accept("one")
    begun = await stage.begin()
    await call(stage, begun, ("a", "once"))
    results = await asyncio.gather(*(result(stage, begun, "a") for _ in range(6)))
    assert [type(each) for each in results].count(Appended) == 1


async def test_of_concurrent_starts_one_succeeds(stage: Stage) -> None:
    await stage.accept("one")
    begun = await stage.begin()
    await call(stage, begun, ("a", "once"))
    started = await asyncio.gather(*(start(stage, begun, "a") for _ in range(6)))
    assert [type(each) for each in started].count(Started) == 1


async def test_a_once_call_starts_at_most_once_and_is_unknown_after_a_crash(stage: Stage) -> None:
    session_id = (await stage.accept("pay")).session_id
    begun = await stage.begin()
    await call(stage, begun, ("pay", "once"), ("look", "pure"))
    assert isinstance(await start(stage, begun, "pay"), Started)
    await stage.lose_holder()
    await stage.recover()
    again = await stage.begin()
    assert again.resumed
    [look] = await stage.look(lambda tx: turns.list_steps(tx, again.turn_id))
    assert (look.call_id, look.state) == ("look", "called")
    assert (await stage.step(begun, "pay")).state == "unknown"
    await result(stage, again, "look")
    await stage.finish(again, "I do not know whether it was paid.")
    assert outputs(await stage.transcript(session_id)) == [UNKNOWN_RESULT, "done"]


async def test_an_idempotent_call_runs_again_with_the_same_key(stage: Stage) -> None:
    await stage.accept("save")
    keys_used = set()
    for _ in range(ATTEMPTS_MAX - 1):
        begun = await stage.begin()
        if not begun.resumed:
            await call(stage, begun, ("save", "idempotent"))
        started = await start(stage, begun, "save")
        assert isinstance(started, Started)
        keys_used.add(started.idempotency_key)
        await stage.lose_holder()
        await stage.recover()
    assert len(keys_used) == 1
    begun = await stage.begin()
    await result(stage, begun, "save")
    await stage.finish(begun)


async def test_open_calls_of_an_ended_turn_get_a_result_with_the_reason(stage: Stage) -> None:
    session_id = (await stage.accept("one")).session_id
    begun = await stage.begin()
    await call(stage, begun, ("a", "pure"), ("b", "once"))
    await start(stage, begun, "b")
    await stage.finish(begun, "never mind")
    assert outputs(await stage.transcript(session_id)) == [NOT_RUN, NO_RESULT]
    assert [(await stage.step(begun, each)).state for each in "ab"] == ["done", "unknown"]
    assert await stage.texts(session_id) == ["one", "never mind"]


async def test_open_calls_on_an_inactive_branch_are_not_adopted(stage: Stage) -> None:
    first = await stage.accept("one")
    session = await stage.session(first.session_id)
    begun = await stage.begin()
    await call(stage, begun, ("a", "idempotent"))
    await fail(stage, begun, Failure(reason="busy", retry_at=stage.clock.now() + MINUTE))
    await stage.do(
        lambda tx: undo(tx, first.session_id, actor=Actor(person_id=session.owner_id, give_way=give_way))
    )
    assert await stage.fate(first) == "cancelled"
    await stage.accept("two")
    again = await stage.begin()
    assert not again.resumed
    await stage.finish(again, "2")
    assert outputs(await stage.transcript(first.session_id)) == []


async def test_the_text_so_far_is_stored_until_the_turn_ends(stage: Stage) -> None:
    await stage.accept("one")
    begun = await stage.begin()
    for begins, text in ((0, "Hel"), (3, "lo \ud800"), (3, "again")):
        await stage.do(
            lambda tx, begins=begins, text=text: record_text(  # type: ignore[misc]
                tx, begun.held, start=begins, text=text
            )
        )
    assert await stage.look(lambda tx: turns.text_so_far(tx, begun.turn_id)) == "Hello \ud800"
    assert await stage.look(lambda tx: turns.text_so_far(tx, begun.turn_id, start=3)) == "lo \ud800"
    await stage.finish(begun, "Hello")
    assert await stage.look(lambda tx: turns.text_so_far(tx, begun.turn_id)) == ""


async def test_a_missing_turn_is_not_found(stage: Stage) -> None:
    with pytest.raises(NotFound):
        await stage.look(lambda tx: turns.get_turn(tx, 999))


async def test_a_waiting_turn_resumes_only_with_the_answer(stage: Stage) -> None:
    first = await stage.accept("delete it")
    begun = await stage.begin()
    await call(stage, begun, ("c", "ask"))
    assert isinstance(await start(stage, begun, "c"), NotStarted)
    approval_id = await ask(stage, begun)
    assert (await stage.turn(begun)).state == "waiting"
    assert await stage.said() == [("telegram:ana", "May I?")]
    second = await stage.accept("and then?")
    assert await stage.begin_if_any() is None
    assert await stage.do(lambda tx: begin_turn(tx, holder="x", session_id=first.session_id)) is None
    # A waiting turn does not block other sessions.
    await stage.meet("ben")
    await stage.accept("meanwhile", source=dm("ben"))
    await stage.finish(await stage.begin())
    person_id = (await stage.session(first.session_id)).owner_id
    await stage.do(lambda tx: decide_approval(tx, approval_id, "approved", person_id=person_id))  # type: ignore[arg-type]
    again = await stage.begin(holder="another gateway")
    assert (again.turn_id, again.resumed) == (begun.turn_id, True)
    assert again.lease.epoch > begun.lease.epoch
    assert isinstance(await start(stage, again, "c"), Started)
    await result(stage, again, "c")
    await stage.finish(again, "deleted")
    assert await stage.fate(first) == "answered"
    assert (await stage.item(again.answers[0].id)).fate == "merged"
    await stage.finish(await stage.begin(), "then this")
    assert await stage.fate(second) == "answered"


async def test_an_approval_holds_after_a_crash(stage: Stage) -> None:
    first = await stage.accept("delete it")
    begun = await stage.begin()
    await call(stage, begun, ("c", "ask"))
    approval_id = await ask(stage, begun)
    person_id = (await stage.session(first.session_id)).owner_id
    await stage.do(lambda tx: decide_approval(tx, approval_id, "approved", person_id=person_id))  # type: ignore[arg-type]
    await stage.begin()
    await stage.lose_holder()
    await stage.recover()
    again = await stage.begin()
    assert again.turn_id != begun.turn_id
    assert isinstance(await start(stage, again, "c"), Started)
    await result(stage, again, "c")
    await stage.finish(again, "deleted")
    assert await stage.begin_if_any() is None
    assert [text for _, text in await stage.said()] == ["May I?", "deleted"]


async def test_a_denied_call_does_not_start(stage: Stage) -> None:
    first = await stage.accept("delete it")
    begun = await stage.begin()
    await call(stage, begun, ("c", "ask"))
    approval_id = await ask(stage, begun)
    person_id = (await stage.session(first.session_id)).owner_id
    await stage.do(lambda tx: decide_approval(tx, approval_id, "denied", person_id=person_id))  # type: ignore[arg-type]
    again = await stage.begin()
    assert isinstance(await start(stage, again, "c"), NotStarted)


async def test_a_waiting_turn_can_be_stopped(stage: Stage) -> None:
    first = await stage.accept("delete it")
    begun = await stage.begin()
    await call(stage, begun, ("c", "ask"))
    approval_id = await ask(stage, begun)
    stopped = await stage.do(lambda tx: stop_session(tx, first.session_id, holder="x"))
    assert stopped == "stopped"
    assert outputs(await stage.transcript(first.session_id)) == [NOT_RUN]
    person_id = (await stage.session(first.session_id)).owner_id
    await stage.do(lambda tx: decide_approval(tx, approval_id, "approved", person_id=person_id))  # type: ignore[arg-type]
    assert await stage.begin_if_any() is None


async def test_a_waiting_turn_does_not_resume_while_another_holder_has_the_session(stage: Stage) -> None:
    first = await stage.accept("delete it")
    begun = await stage.begin()
    await call(stage, begun, ("c", "ask"))
    approval_id = await ask(stage, begun)
    person_id = (await stage.session(first.session_id)).owner_id
    await stage.do(lambda tx: decide_approval(tx, approval_id, "approved", person_id=person_id))  # type: ignore[arg-type]

    def begin_held(tx: Tx) -> BegunTurn | None:
        lease = leases.take_lease(tx, first.session_id, holder="somebody")
        assert lease is not None
        begun = begin_turn(tx, holder="x", session_id=first.session_id)
        leases.release_lease(tx, lease)
        return begun

    assert await stage.do(begin_held) is None
