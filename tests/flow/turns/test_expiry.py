"""The running gateway flushes memory before a reset: silently, and without delaying messages."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from keryx.agents.agent import Answer, Brief, Stage
from keryx.agents.model.guide import Guide
from keryx.clock import MINUTE
from keryx.config import Settings
from keryx.core.conversations.rules.message import NewMessage, ToolCallPart
from keryx.core.turns.rules.reset import ResetPolicies, ResetPolicy
from keryx.errors import AgentFailed
from keryx.gateway.gateway import Gateway
from keryx.gateway.runtime.runtime import Runtime
from keryx.gateway.upkeep import flush_expiring
from keryx.ids import Ids
from keryx.store.database import Database
from keryx.testing.clock import FakeClock
from keryx.testing.platform import FakePlatform
from keryx.tools.keryx.plugin import keryx_tools
from keryx.tools.tool import Toolbox
from tests.conformance.stage import Stage as Play
from tests.flow.running import Actor, last_text, let_in, said, until

HOURLY = Settings(reset=ResetPolicies(default=ResetPolicy(mode="idle", idle_minutes=60)))
NOTICE = "fresh conversation after 60 minutes without a message; /resume brings the last one back"


async def sleep_a_fiftieth(seconds: float) -> None:
    await asyncio.sleep(seconds / 50)


@asynccontextmanager
async def fast_gateway(
    database: Database,
    clock: FakeClock,
    platform: FakePlatform,
    agent: Actor | Guide,
    *,
    holder: str = "node",
) -> AsyncIterator[Gateway]:
    """Run a gateway on a clock that a test moves."""
    runtime = Runtime(
        database=database, settings=HOURLY, ids=Ids(), clock=clock, holder=holder, sleep=sleep_a_fiftieth
    )
    gateway = Gateway(runtime, agent, Toolbox(keryx_tools(database)), [platform.adapter()])
    await gateway.start()
    try:
        yield gateway
    finally:
        await gateway.stop(seconds=1)


async def delivered(*gateways: Gateway) -> None:
    """Wait until the first answer is recorded as sent: if the clock jumps before that, it is sent again."""
    await until(lambda: sum(gateway.metrics.deliveries["sent"] for gateway in gateways) == 1)


@pytest.fixture
async def platform(database: Database) -> FakePlatform:
    platform = FakePlatform()
    await let_in(database, platform, "ana")
    return platform


@pytest.fixture
def play(database: Database, clock: FakeClock) -> Play:
    return Play(database=database, clock=clock)


def flushing(work: Callable[[Brief, Stage], Awaitable[Answer]]) -> Actor:
    """Return an agent that repeats messages, and flushes with ``work``."""

    async def act(brief: Brief, stage: Stage) -> Answer:
        if brief.purpose == "flush":
            return await work(brief, stage)
        return said(f"You said: {last_text(brief)}")

    return Actor(act)


def flushes(agent: Actor) -> list[Brief]:
    return [brief for brief in agent.briefs if brief.purpose == "flush"]


async def remember_tea(brief: Brief, stage: Stage) -> Answer:
    call = ToolCallPart(call_id="note", name="remember", arguments={"note": "likes tea"})
    await stage.act(NewMessage(role="assistant", parts=(call,)))
    return said("I noted that.")


async def linger(brief: Brief, stage: Stage) -> Answer:
    await asyncio.sleep(600)
    return said("never")


async def test_the_agent_saves_notes_silently_before_the_reset(
    database: Database, clock: FakeClock, platform: FakePlatform, play: Play
) -> None:
    agent = flushing(remember_tea)
    async with fast_gateway(database, clock, platform, agent) as gateway:
        platform.say("I like tea")
        await delivered(gateway)
        clock.advance(50 * MINUTE + 1)
        await until(lambda: gateway.metrics.turns_ended["answered"] == 2)
        [brief] = flushes(agent)
        assert [(offer.name, offer.effect) for offer in brief.tools] == [
            ("recall", "pure"),
            ("remember", "once"),
        ]
        clock.advance(10 * MINUTE)
        platform.say("what do I like?")
        await until(lambda: len(platform.shown) == 3)
    assert platform.said_to("1") == ["You said: I like tea", NOTICE, "You said: what do I like?"]
    assert agent.briefs[-1].session_id != brief.session_id
    assert agent.briefs[-1].context.memories == ("likes tea",)
    assert len(flushes(agent)) == 1
    assert await play.rows("SELECT id FROM approvals") == []
    await play.check()


async def test_a_message_does_not_wait_for_a_flush_that_hangs(
    database: Database, clock: FakeClock, platform: FakePlatform, play: Play
) -> None:
    agent = flushing(linger)
    async with fast_gateway(database, clock, platform, agent) as gateway:
        platform.say("I like tea")
        await delivered(gateway)
        clock.advance(55 * MINUTE)
        await until(lambda: len(flushes(agent)) == 1)
        platform.say("and coffee")
        await until(lambda: len(platform.shown) == 2)
    assert platform.said_to("1") == ["You said: I like tea", "You said: and coffee"]
    assert len({brief.session_id for brief in agent.briefs}) == 1
    await play.check()


async def test_a_message_after_the_expiry_opens_a_new_session_while_a_flush_hangs(
    database: Database, clock: FakeClock, platform: FakePlatform, play: Play
) -> None:
    agent = flushing(linger)
    async with fast_gateway(database, clock, platform, agent) as gateway:
        platform.say("I like tea")
        await delivered(gateway)
        clock.advance(60 * MINUTE)
        await until(lambda: len(flushes(agent)) == 1)
        clock.advance(1)
        platform.say("good morning")
        await until(lambda: len(platform.shown) == 3)
    assert platform.said_to("1") == ["You said: I like tea", NOTICE, "You said: good morning"]
    assert agent.briefs[-1].session_id != agent.briefs[0].session_id
    await play.check()


async def test_a_failed_flush_is_recorded_and_the_reset_still_happens(
    database: Database, clock: FakeClock, platform: FakePlatform, play: Play
) -> None:
    async def fail(brief: Brief, stage: Stage) -> Answer:
        raise AgentFailed("the provider is away")

    agent = flushing(fail)
    async with fast_gateway(database, clock, platform, agent) as gateway:
        platform.say("I like tea")
        await delivered(gateway)
        clock.advance(55 * MINUTE)
        await until(lambda: gateway.metrics.turns_ended["failed"] == 1)
        clock.advance(10 * MINUTE)
        platform.say("good morning")
        await until(lambda: len(platform.shown) == 3)
    assert platform.said_to("1") == ["You said: I like tea", NOTICE, "You said: good morning"]
    [row] = await play.rows("SELECT state, reason FROM turns WHERE purpose = 'flush'")
    assert row == ("failed", "the provider is away")
    [row] = await play.rows("SELECT fate, fate_note FROM inbox WHERE purpose = 'flush'")
    assert row == ("failed", "the provider is away")


async def test_only_one_of_two_gateways_flushes(
    database: Database, clock: FakeClock, platform: FakePlatform, play: Play
) -> None:
    first, second = flushing(remember_tea), flushing(remember_tea)
    async with (
        fast_gateway(database, clock, platform, first, holder="node-1") as gateway,
        fast_gateway(database, clock, platform, second, holder="node-2") as other,
    ):
        platform.say("I like tea")
        await delivered(gateway, other)
        clock.advance(55 * MINUTE)
        await until(lambda: bool(flushes(first) or flushes(second)))
        platform.say("and coffee")
        await until(lambda: len(platform.shown) == 2)
    assert len(flushes(first)) + len(flushes(second)) == 1
    assert await play.rows("SELECT COUNT(*) FROM inbox WHERE purpose = 'flush'") == [(1,)]


async def test_the_guide_flushes_silently(
    database: Database, clock: FakeClock, platform: FakePlatform, play: Play
) -> None:
    async with fast_gateway(database, clock, platform, Guide()) as gateway:
        platform.say("hello")
        await delivered(gateway)
        clock.advance(55 * MINUTE)
        await until(lambda: gateway.metrics.turns_ended["answered"] == 2)
    assert len(platform.shown) == 1
    [row] = await play.rows("SELECT flushed_seq = last_seq, message_count FROM sessions")
    assert tuple(row) == (1, 2)


async def test_a_look_for_expiring_sessions_writes_nothing_if_none_expires(
    database: Database, clock: FakeClock
) -> None:
    runtime = Runtime(database=database, settings=HOURLY, ids=Ids(), clock=clock, holder="node")
    play = Play(database=database, clock=clock)
    await play.meet("ana")
    await play.exchange("hello")
    before = database.change_no
    await flush_expiring(runtime)
    assert database.change_no == before
