"""Cancelling an inbox item."""

import pytest

from keryx.core.conversations.rules.source import LOCAL_CLI
from keryx.core.turns.transactions.accept_message import Accepted
from keryx.core.turns.transactions.cancel_item import cancel_item
from keryx.core.turns.transactions.fail_turn import Failure
from keryx.store.database import Database
from keryx.testing.clock import FakeClock
from tests.conformance.acting import call, fail, outputs, renew
from tests.conformance.stage import Stage


@pytest.fixture
def stage(database: Database, clock: FakeClock) -> Stage:
    return Stage(database=database, clock=clock)


async def cancel(stage: Stage, accepted: Accepted) -> None:
    await stage.do(lambda tx: cancel_item(tx, accepted.inbox_id, holder="script"))


async def test_a_waiting_item_is_cancelled_and_no_turn_begins(stage: Stage) -> None:
    accepted = await stage.accept("hello", source=LOCAL_CLI)
    await cancel(stage, accepted)
    assert await stage.fate(accepted) == "cancelled"
    assert await stage.begin_if_any() is None
    await cancel(stage, accepted)
    assert await stage.fate(accepted) == "cancelled"


async def test_the_turn_that_answers_the_item_is_asked_to_stop(stage: Stage) -> None:
    accepted = await stage.accept("hello", source=LOCAL_CLI)
    begun = await stage.begin()
    await cancel(stage, accepted)
    assert (await renew(stage, begun)).stop_requested
    assert await stage.fate(accepted) is None


async def test_a_turn_that_answers_another_item_continues(stage: Stage) -> None:
    await stage.accept("first", source=LOCAL_CLI)
    begun = await stage.begin()
    waiting = await stage.accept("second", source=LOCAL_CLI)
    await cancel(stage, waiting)
    assert await stage.fate(waiting) == "cancelled"
    assert not (await renew(stage, begun)).stop_requested


async def test_open_calls_of_an_earlier_attempt_get_a_result(stage: Stage) -> None:
    accepted = await stage.accept("hello", source=LOCAL_CLI)
    begun = await stage.begin()
    await call(stage, begun, ("c", "pure"))
    later = Failure(reason="not now", retry_at=stage.clock.now() + 1)
    assert await fail(stage, begun, later) == "again"
    await cancel(stage, accepted)
    assert await stage.fate(accepted) == "cancelled"
    assert outputs(await stage.transcript(accepted.session_id)) == [
        "This was not run: the turn ended before it."
    ]


async def test_an_item_with_an_earlier_attempt_is_cancelled_while_another_turn_runs(stage: Stage) -> None:
    accepted = await stage.accept("hello", source=LOCAL_CLI)
    later = Failure(reason="not now", retry_at=stage.clock.now() + 1_000_000)
    assert await fail(stage, await stage.begin(), later) == "again"
    waiting = await stage.accept("!interrupt and now", source=LOCAL_CLI)
    begun = await stage.begin()
    await cancel(stage, accepted)
    await cancel(stage, waiting)
    assert (await renew(stage, begun)).stop_requested
