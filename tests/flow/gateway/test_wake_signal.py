"""Wake signals: commits, ``set`` and the poll interval wake a loop; and ready turns begin together."""

import asyncio

import pytest

from keryx.agents.agent import Answer, Brief, Stage
from keryx.clock import SystemClock
from keryx.commands.table import COMMANDS
from keryx.config import Settings
from keryx.core.people.tables import people
from keryx.core.turns.transactions.accept_message import accept_message
from keryx.gateway.runtime.runtime import Runtime, WakeSignal
from keryx.gateway.turns.loop import TurnLoop
from keryx.ids import Ids
from keryx.store.database import Database
from keryx.testing.platform import FakePlatform
from keryx.tools.tool import Toolbox
from tests.flow.running import PATIENCE_SECONDS, Actor, said, until


@pytest.fixture
def sleeps() -> list[float]:
    """The sleeps of a loop; each takes a hundredth of a second."""
    return []


@pytest.fixture
def runtime(store: Database, sleeps: list[float]) -> Runtime:
    async def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        await asyncio.sleep(0.01)

    return Runtime(
        database=store, settings=Settings(), ids=Ids(), clock=SystemClock(), holder="node-1", sleep=sleep
    )


async def wait_for(signal: WakeSignal) -> None:
    await asyncio.wait_for(signal.wait(), PATIENCE_SECONDS)


async def test_a_loop_wakes_at_the_start_after_a_commit_and_after_the_poll_interval(
    runtime: Runtime, platform: FakePlatform
) -> None:
    signal = WakeSignal(runtime, "turns")
    watching = asyncio.create_task(signal.watch_commits())
    await wait_for(signal)
    await runtime.database.write(people.ensure_owner)
    message = platform.say("hello")
    await runtime.database.write(
        lambda tx: accept_message(tx, message, settings=runtime.settings, ids=runtime.ids, commands=COMMANDS)
    )
    await wait_for(signal)
    await wait_for(signal)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def test_several_signals_before_a_wait_count_as_one(runtime: Runtime) -> None:
    signal = WakeSignal(runtime, "turns")
    signal.set()
    signal.set()
    await wait_for(signal)
    waiting = asyncio.create_task(signal.wait())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiting.done()
    signal.set()
    await asyncio.wait_for(waiting, PATIENCE_SECONDS)


async def test_a_loop_whose_store_was_closed_keeps_polling(runtime: Runtime, sleeps: list[float]) -> None:
    await runtime.database.close()
    running = asyncio.create_task(TurnLoop(runtime, Actor(), Toolbox()).run())
    await until(lambda: len(sleeps) > 10)
    assert not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_ready_turns_begin_together_up_to_the_limit(runtime: Runtime, platform: FakePlatform) -> None:
    for number in range(5):
        message = platform.say("hello", chat=str(number))
        await runtime.database.write(
            lambda tx, message=message: accept_message(
                tx, message, settings=runtime.settings, ids=runtime.ids, commands=COMMANDS
            )  # type: ignore[misc]
        )
    go_on = asyncio.Event()
    most = 0

    async def linger(brief: Brief, stage: Stage) -> Answer:
        nonlocal most
        most = max(most, loop.running)
        await go_on.wait()
        return said("yes")

    agent = Actor(linger)
    loop = TurnLoop(runtime, agent, Toolbox(), turns_max=3)
    running = asyncio.create_task(loop.run())
    await until(lambda: len(agent.briefs) == 3)
    go_on.set()
    await until(lambda: len(agent.briefs) == 5 and not loop.running)
    assert most == 3
    await loop.drain(1)
    await running
