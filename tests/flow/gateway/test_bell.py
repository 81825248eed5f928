"""What wakes the loops: commits, whoever rings, time; and that waiting turns begin together."""

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


class NotingPace:
    """Lets no time pass, and notes how often it was asked to."""

    def __init__(self) -> None:
        self.sleeps: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        await asyncio.sleep(0.01)


@pytest.fixture
def pace() -> NotingPace:
    return NotingPace()


@pytest.fixture
def runtime(store: Database, pace: NotingPace) -> Runtime:
    return Runtime(
        database=store, settings=Settings(), ids=Ids(), clock=SystemClock(), holder="node-1", pace=pace
    )


async def rings(bell: WakeSignal) -> None:
    await asyncio.wait_for(bell.wait(), PATIENCE_SECONDS)


async def test_it_rings_at_the_start_at_a_commit_and_after_a_while_by_itself(
    runtime: Runtime, platform: FakePlatform
) -> None:
    bell = WakeSignal(runtime, "turns")
    listening = asyncio.create_task(bell.listen())
    await rings(bell)
    await runtime.write(people.ensure_owner)
    message = platform.say("hello")
    await runtime.write(
        lambda tx: accept_message(tx, message, settings=runtime.settings, ids=runtime.ids, commands=COMMANDS)
    )
    await rings(bell)
    await rings(bell)
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)


async def test_rings_while_nobody_waits_are_one(runtime: Runtime) -> None:
    bell = WakeSignal(runtime, "turns")
    bell.ring()
    bell.ring()
    await rings(bell)
    waiting = asyncio.create_task(bell.wait())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiting.done()
    bell.ring()
    await asyncio.wait_for(waiting, PATIENCE_SECONDS)


async def test_a_loop_whose_store_was_closed_looks_now_and_then_and_does_not_end(
    runtime: Runtime, pace: NotingPace
) -> None:
    await runtime.database.close()
    running = asyncio.create_task(TurnLoop(runtime, Actor(), Toolbox()).run())
    await until(lambda: len(pace.sleeps) > 10)
    assert not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_turns_that_wait_begin_together_and_never_more_than_there_is_room_for(
    runtime: Runtime, platform: FakePlatform
) -> None:
    for number in range(5):
        message = platform.say("hello", chat=str(number))
        await runtime.write(
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
