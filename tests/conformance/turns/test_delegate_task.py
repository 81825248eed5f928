"""Delegating a task: one child session for each call, with the same people, stopped with its parent."""

from collections.abc import Callable

import pytest

from keryx.core.conversations.rules.message import NewMessage, ToolCallPart
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import branches
from keryx.core.turns.rules.delegation import TASKS_MAX
from keryx.core.turns.tables import turns
from keryx.core.turns.transactions.begin_turn import BegunTurn, begin_turn
from keryx.core.turns.transactions.delegate_task import (
    STOPPING,
    TOO_MANY,
    Delegated,
    NotDelegated,
    Task,
    delegate_task,
)
from keryx.core.turns.transactions.fail_turn import Failure, fail_turn, stop_session
from keryx.core.turns.transactions.record_step import record_calls
from keryx.core.turns.views.delegated_tasks import TaskEnded, find_ended
from keryx.core.turns.views.pending_work import list_ready
from keryx.core.turns.views.turn import show_turn
from keryx.errors import InvalidValue, NotFound
from keryx.store.database import Database
from keryx.testing.builders import dm, group
from keryx.testing.clock import FakeClock
from tests.conformance.stage import Stage


@pytest.fixture
async def stage(database: Database, clock: FakeClock) -> Stage:
    stage = Stage(database=database, clock=clock)
    await stage.meet("ana", role="member")
    return stage


async def begun_at(stage: Stage, source: Source | None = None) -> BegunTurn:
    await stage.accept("do it", source=source)
    return await stage.begin()


async def calls(stage: Stage, begun: BegunTurn, *, count: int = 1, name: str = "delegate") -> list[str]:
    """Let a turn make calls and return their keys."""
    made = tuple(
        ToolCallPart(call_id=f"c{number}", name=name, arguments={}, effect="idempotent")
        for number in range(count)
    )
    message = NewMessage(role="assistant", parts=made)
    await stage.do(lambda tx: record_calls(tx, begun.held, message=message, ids=stage.ids))
    steps = await stage.look(lambda tx: turns.list_steps(tx, begun.turn_id))
    return [step.idempotency_key for step in steps]


async def give(
    stage: Stage, session_id: str, key: str, *, person_id: int | None = None
) -> Delegated | NotDelegated:
    owner_id = (await stage.session(session_id)).owner_id
    task = Task(key=key, text="Count the stars.", tools=["look"])
    return await stage.do(
        lambda tx: delegate_task(
            tx, stage.ids, task, session_id=SessionId(session_id), person_id=person_id or owner_id
        )
    )


async def given(stage: Stage, begun: BegunTurn) -> Delegated:
    [key] = await calls(stage, begun)
    outcome = await give(stage, begun.lease.session_id, key)
    assert isinstance(outcome, Delegated)
    return outcome


async def ended(stage: Stage, task: Delegated) -> TaskEnded | None:
    owner_id = (await stage.session(task.session_id)).owner_id
    return await stage.look(lambda tx: find_ended(tx, task.inbox_id, person_id=owner_id))


async def test_a_repeated_call_finds_its_child_session(stage: Stage) -> None:
    begun = await begun_at(stage)
    [key] = await calls(stage, begun)
    first = await give(stage, begun.lease.session_id, key)
    assert await give(stage, begun.lease.session_id, key) == first


@pytest.mark.parametrize("where", [dm, group])
async def test_a_child_session_has_the_same_people_and_no_surface(
    stage: Stage, where: Callable[[], Source]
) -> None:
    begun = await begun_at(stage, where())
    task = await given(stage, begun)
    parent, child = await stage.session(begun.lease.session_id), await stage.session(task.session_id)
    assert (child.audience_id, child.owner_id) == (parent.audience_id, parent.owner_id)
    assert (child.state, child.archived_at is None) == ("closed", False)
    working = await stage.begin()
    assert working.lease.session_id == task.session_id
    view = await stage.look(lambda tx: show_turn(tx, working.turn_id))
    assert view.delegation is not None
    assert (view.delegation.depth, list(view.delegation.tools)) == (1, ["look"])
    assert view.audience_id == (None if where is dm else parent.audience_id)
    assert await ended(stage, task) is None
    await stage.finish(working, "42")
    assert await stage.rows(f"SELECT id FROM outbox WHERE turn_id = {working.turn_id}") == []
    assert await ended(stage, task) == TaskEnded(answer="42")


async def test_the_delegations_of_a_turn_are_bounded(stage: Stage) -> None:
    begun = await begun_at(stage)
    keys = await calls(stage, begun, count=TASKS_MAX + 1)
    last = await give(stage, begun.lease.session_id, keys[-1])
    assert last == NotDelegated(reason=TOO_MANY)
    assert isinstance(await give(stage, begun.lease.session_id, keys[-2]), Delegated)


async def test_the_depth_of_delegation_is_bounded(stage: Stage) -> None:
    begun = await begun_at(stage)
    for _ in range(2):
        await given(stage, begun)
        begun = await stage.begin()
    [key] = await calls(stage, begun)
    with pytest.raises(InvalidValue, match="at most 2; do it here"):
        await give(stage, begun.lease.session_id, key)


async def test_a_task_in_an_invisible_session_is_refused(stage: Stage) -> None:
    ben = await stage.meet("ben")
    begun = await begun_at(stage)
    [key] = await calls(stage, begun)
    with pytest.raises(NotFound):
        await give(stage, begun.lease.session_id, key, person_id=ben.id)


async def test_a_turn_that_stops_or_has_ended_delegates_nothing(stage: Stage) -> None:
    begun = await begun_at(stage)
    [key] = await calls(stage, begun)
    session_id = begun.lease.session_id
    assert await stage.do(lambda tx: stop_session(tx, session_id, holder="x")) == "stopping"
    assert await give(stage, session_id, key) == NotDelegated(reason=STOPPING)
    await stage.finish(begun)
    assert await give(stage, session_id, key) == NotDelegated(reason=STOPPING)


async def test_a_stop_ends_tasks_that_wait_and_asks_those_that_run_to_end(stage: Stage) -> None:
    begun = await begun_at(stage)
    tasks = []
    for key in await calls(stage, begun, count=3):
        task = await give(stage, begun.lease.session_id, key)
        assert isinstance(task, Delegated)
        tasks.append(task)
    running = await stage.do(lambda tx: begin_turn(tx, holder="h", session_id=tasks[0].session_id))
    assert running is not None
    below = await given(stage, running)
    session_id = begun.lease.session_id
    await stage.do(lambda tx: stop_session(tx, session_id, holder="x"))
    stopping = await stage.look(lambda tx: turns.list_stopping(tx, "h"))
    assert stopping == [running.turn_id]
    for task in (*tasks[1:], below):
        assert await ended(stage, task) == TaskEnded(answer=None, reason="it was stopped")
    assert await ended(stage, tasks[0]) is None


async def test_a_task_without_an_answer_has_a_reason(stage: Stage) -> None:
    begun = await begun_at(stage)
    first, second = [
        await give(stage, begun.lease.session_id, key) for key in await calls(stage, begun, count=2)
    ]
    assert isinstance(first, Delegated)
    assert isinstance(second, Delegated)
    failing = await stage.do(lambda tx: begin_turn(tx, holder="h", session_id=first.session_id))
    assert failing is not None
    failure = Failure(reason="no key")
    await stage.do(lambda tx: fail_turn(tx, failing.held, failure=failure, ids=stage.ids))
    await stage.finish(await stage.begin(), None)
    assert await ended(stage, first) == TaskEnded(answer=None, reason="no key")
    assert await ended(stage, second) == TaskEnded(answer="")
    gone = await stage.look(lambda tx: find_ended(tx, 999, person_id=1))
    assert gone == TaskEnded(answer=None, reason="its session was purged")


async def test_without_room_only_tasks_may_begin(stage: Stage) -> None:
    begun = await begun_at(stage)
    task = await given(stage, begun)
    await stage.meet("ben")
    other = await stage.accept("me too", source=dm("ben"))
    session_id = begun.lease.session_id
    assert await stage.look(lambda tx: list_ready(tx, limit=0)) == [task.session_id]
    assert set(await stage.look(lambda tx: list_ready(tx, limit=9))) == {task.session_id, other.session_id}
    assert await stage.look(lambda tx: list_ready(tx, session_id=session_id, limit=0)) == [task.session_id]
    assert await stage.look(lambda tx: list_ready(tx, session_id=other.session_id, limit=0)) == []
    await stage.do(lambda tx: begin_turn(tx, holder="h", session_id=task.session_id))
    assert await stage.look(lambda tx: list_ready(tx, session_id=session_id, limit=0)) == []


async def test_an_imported_link_is_no_delegation(stage: Stage) -> None:
    begun = await begun_at(stage)
    session_id = begun.lease.session_id
    await stage.do(
        lambda tx: branches.add_link(
            tx, kind="delegation", to_session_id=session_id, from_session_id="x", origin="hermes:1"
        )
    )
    assert await stage.look(lambda tx: branches.find_delegation(tx, session_id)) is None
