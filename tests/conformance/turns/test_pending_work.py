"""The work of the loops: ready sessions, and unfinished work of a crash."""

from functools import partial

import pytest

from keryx.core.accounts.transactions import take_connector
from keryx.core.deliveries.transactions.claim_deliveries import claim_deliveries
from keryx.core.turns.rules.lease import LEASE_TIME
from keryx.core.turns.views.pending_work import list_ready, needs_recovery
from keryx.store.database import Database
from keryx.testing.builders import dm
from keryx.testing.clock import FakeClock
from tests.conformance.stage import Stage


@pytest.fixture
async def stage(database: Database, clock: FakeClock) -> Stage:
    stage = Stage(database=database, clock=clock)
    for user in ("ana", "ben", "cleo"):
        await stage.meet(user)
    return stage


async def test_ready_sessions_are_listed_up_to_the_limit_longest_waiting_first(stage: Stage) -> None:
    sessions = []
    for user in ("cleo", "ana", "ben"):
        sessions.append((await stage.accept(f"hello from {user}", source=dm(user))).session_id)
        stage.clock.advance(1)
    assert await stage.look(partial(list_ready, limit=5)) == sessions
    assert await stage.look(partial(list_ready, limit=2)) == sessions[:2]


async def test_a_turn_with_an_expired_lease_needs_recovery(stage: Stage) -> None:
    await stage.accept("hello")
    await stage.begin()
    assert not await stage.look(needs_recovery)
    await stage.lose_holder()
    assert await stage.look(needs_recovery)
    await stage.recover()
    assert not await stage.look(needs_recovery)


async def test_a_delivery_of_an_account_without_a_holder_needs_recovery(stage: Stage) -> None:
    await stage.exchange("hello")
    connector = await stage.do(lambda tx: take_connector(tx, platform="telegram", account="", holder="node"))
    assert connector is not None
    assert len(await stage.do(lambda tx: claim_deliveries(tx, connector))) == 1
    assert not await stage.look(needs_recovery)
    stage.clock.advance(LEASE_TIME + 1)
    assert await stage.look(needs_recovery)
    await stage.recover()
    assert not await stage.look(needs_recovery)
