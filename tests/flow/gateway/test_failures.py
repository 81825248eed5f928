"""The loops when the store, a lease, an adapter or a tool fails, or when no answer comes."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest

from keryx.agents.agent import Answer, Brief, Stage
from keryx.clock import MINUTE
from keryx.config import Settings
from keryx.core.approvals.rules.approval import APPROVAL_LIFETIME
from keryx.core.turns.rules.lease import CANCEL_AFTER, LEASE_TIME
from keryx.core.turns.transactions.accept_message import Duplicate
from keryx.core.turns.transactions.record_step import ask_approval, record_calls
from keryx.errors import StoreUnavailable, ToolFailed
from keryx.gateway.gateway import Gateway
from keryx.gateway.intake import accept_update
from keryx.gateway.runtime.runtime import Runtime, repeat_forever
from keryx.gateway.turns.loop import TurnLoop
from keryx.gateway.upkeep import expire_questions
from keryx.gateway.waiting_commands import answer_waiting
from keryx.ids import Ids
from keryx.platforms.adapter import Update
from keryx.store.database import Database, Tx
from keryx.testing.builders import call_message, dm, group
from keryx.testing.clock import FakeClock
from keryx.testing.platform import FakeAdapter, FakePlatform
from keryx.tools.keryx.plugin import keryx_tools
from keryx.tools.tool import Toolbox, ToolCall
from tests.conformance.stage import Stage as Play
from tests.flow.running import Actor, let_in, said, until


async def sleep_briefly(seconds: float) -> None:
    await asyncio.sleep(min(seconds, 0.005))


@pytest.fixture
def runtime(database: Database, clock: FakeClock) -> Runtime:
    return Runtime(
        database=database,
        settings=Settings(welcome=None),
        ids=Ids(),
        clock=clock,
        holder="node",
        sleep=sleep_briefly,
    )


@pytest.fixture
async def play(database: Database, clock: FakeClock) -> Play:
    play = Play(database=database, clock=clock)
    await play.meet("ana")
    return play


async def test_a_write_with_retry_waits_for_the_store(runtime: Runtime) -> None:
    tries = 0

    def work(tx: Tx) -> int:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise StoreUnavailable("the disk is full")
        return tries

    assert await runtime.write_with_retry(work, what="this") == 3


async def test_a_repeated_loop_survives_its_failures(runtime: Runtime) -> None:
    calls = 0
    enough = asyncio.Event()

    async def work() -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise StoreUnavailable("away")
        if calls == 2:
            raise ZeroDivisionError
        enough.set()

    loop = asyncio.create_task(repeat_forever(runtime, "this", work, seconds=0))
    await asyncio.wait_for(enough.wait(), 10)
    loop.cancel()
    await asyncio.gather(loop, return_exceptions=True)
    assert calls >= 3


async def test_turns_continue_when_their_questions_expire(runtime: Runtime, play: Play) -> None:
    await play.accept("go")
    turn = await play.begin()
    await play.do(lambda tx: record_calls(tx, turn.held, message=call_message(("c", "ask")), ids=play.ids))
    await play.do(lambda tx: ask_approval(tx, turn.held, call_id="c", question="?", ids=play.ids))
    assert await play.begin_if_any() is None
    play.clock.advance(APPROVAL_LIFETIME + 1)
    await expire_questions(runtime)
    assert (await play.begin()).turn_id == turn.turn_id


async def test_every_waiting_command_is_answered(
    runtime: Runtime, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        await play.exchange(f"word number {number}")
    before = len(await play.said())
    for text in ("/search word", "/compress preview", "/search nothing-like-it", "/platforms"):
        await play.accept(text)
    assert await answer_waiting(runtime) == 4
    texts = [text for _, text in await play.said()][before:]
    assert "There is more; search with more words." in texts[0]
    assert texts[1].startswith("16 messages, about ")
    assert texts[2].startswith("Nothing found.")
    assert texts[3].startswith("Connected now:")
    await play.accept("/search again", ref="again")

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("keryx.gateway.waiting_commands.search", fail)
    await answer_waiting(runtime)
    assert (await play.said())[-1][1].startswith("The command failed")


async def test_duplicates_and_refused_messages_are_distinguished(
    runtime: Runtime, database: Database
) -> None:
    platform = FakePlatform()
    await let_in(database, platform, "ana")
    adapter = platform.adapter()
    update = platform.say("hello")
    first = await accept_update(runtime, adapter, update)
    assert isinstance(await accept_update(runtime, adapter, update), Duplicate)
    assert first is not None
    assert await accept_update(runtime, adapter, platform.say("hi", user="nobody")) is not None


async def start_turn(runtime: Runtime, play: Play) -> tuple[TurnLoop, "asyncio.Task[None]"]:
    at_work = asyncio.Event()

    async def linger(brief: Brief, stage: Stage) -> Answer:
        at_work.set()
        await asyncio.sleep(60)
        return said("never")

    loop = TurnLoop(runtime, Actor(linger), Toolbox())
    await play.accept("hello")
    running = asyncio.create_task(loop.run())
    await asyncio.wait_for(at_work.wait(), 10)
    return loop, running


async def test_a_turn_that_was_taken_over_is_dropped(runtime: Runtime, play: Play) -> None:
    loop, running = await start_turn(runtime, play)
    loop.turns_max = 0
    play.clock.advance(LEASE_TIME + MINUTE)
    await until(lambda: not loop.running)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert await play.said() == []


async def test_a_turn_whose_lease_cannot_be_renewed_cancels_itself(
    runtime: Runtime, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr("keryx.gateway.turns.loop.renew_turn", away)
    loop, running = await start_turn(runtime, play)
    play.clock.advance(CANCEL_AFTER + 1)
    await until(lambda: not loop.running)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_turns_begin_when_the_store_is_available_again(
    runtime: Runtime, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0

    def away(*_: object, **__: object) -> None:
        nonlocal tries
        tries += 1
        raise StoreUnavailable("away")

    monkeypatch.setattr("keryx.gateway.turns.loop.begin_turn", away)
    loop = TurnLoop(runtime, Actor(), Toolbox(), turns_max=1)
    await play.accept("hello")
    running = asyncio.create_task(loop.run())
    await until(lambda: tries > 1)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


class FailingOnce(FakeAdapter):
    """Fails the first time it receives."""

    has_failed = False

    async def receive(self) -> AsyncGenerator[Update, None]:
        if not self.has_failed:
            self.has_failed = True
            raise ConnectionResetError
        async for update in super().receive():
            yield update


async def test_an_account_that_fails_is_connected_again(store: Database, platform: FakePlatform) -> None:
    runtime = Runtime(
        database=store, settings=Settings(), ids=Ids(), clock=FakeClock(), holder="node", sleep=sleep_briefly
    )
    gateway = Gateway(runtime, Actor(), Toolbox(), [FailingOnce(platform)])
    await gateway.start()
    waiting = asyncio.create_task(gateway.wait())
    platform.say("hello")
    await until(lambda: len(platform.shown) == 1)
    await gateway.stop(seconds=1)
    await asyncio.wait_for(waiting, 10)


async def test_only_the_owner_reads_in_private_what_does_not_work(runtime: Runtime, play: Play) -> None:
    broken = replace(runtime, troubles=lambda: ["The MCP server 'x' does not work: no key"])
    owner = await play.meet("olga", role="owner")
    for number, source in enumerate((dm("olga"), group("olga"), dm("ana"))):
        await play.accept("/platforms", source=source, ref=str(number))
    assert await answer_waiting(broken) == 3
    told = {to: text for to, text in await play.said() if text.startswith("Connected now:")}
    assert [to for to, text in told.items() if "no key" in text] == ["telegram:olga"]
    assert len(told) == 3

    tool = Toolbox(keryx_tools(play.database, troubles=broken.troubles)).find("list_platforms")
    assert tool is not None
    use = ToolCall(arguments={}, session_id="s", person_id=owner.id, audience_id=None, key="k")
    assert str(await tool.run(use)).endswith("\nThe MCP server 'x' does not work: no key")
    assert "no key" not in str(await tool.run(replace(use, audience_id=1)))


async def test_tools_show_private_facts_only_in_private(store: Database, platform: FakePlatform) -> None:
    tools = Toolbox(keryx_tools(store))
    assert [offer.name for offer in tools.offers()] == sorted(offer.name for offer in tools.offers())

    async def ask(name: str, *, audience_id: int | None = None, **arguments: str) -> object:
        tool = tools.find(name)
        assert tool is not None
        use = ToolCall(arguments=arguments, session_id="s", person_id=1, audience_id=audience_id, key="k")
        assert tool.question(replace(use, arguments={"note": "x"}))
        return await tool.run(use)

    assert await ask("list_sessions") == "There are no conversations yet."
    assert str(await ask("list_schedules")).startswith("Nothing is scheduled.")
    assert await ask("list_processes") == "No background process runs."
    assert str(await ask("list_platforms")).startswith("No platform is connected")
    assert str(await ask("search_history", query="tea")).startswith("Nothing found.")
    for name in ("list_sessions", "list_schedules", "list_processes"):
        with pytest.raises(ToolFailed, match="other people read this chat"):
            await ask(name, audience_id=1)
    with pytest.raises(ToolFailed, match="'query' is blank"):
        await ask("search_history", query=" ")
    assert tools.unknown("zzz").endswith("search_history, send_message, send_to_others.")
