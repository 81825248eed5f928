"""Delegated tasks through the real gateway: one child per call, stopped with its parent, answering only its parent."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from keryx.agents.agent import Agent, Answer, Brief, Stage
from keryx.clock import SystemClock
from keryx.commands.table import COMMANDS
from keryx.config import Settings
from keryx.core.conversations.rules.message import NewMessage, ToolCallPart
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.tables import branches
from keryx.core.conversations.views.session_list import SessionFilter, list_sessions
from keryx.core.turns.rules.inbox import ATTEMPTS_MAX
from keryx.core.turns.transactions.accept_message import accept_message
from keryx.core.upkeep.transactions.record_heartbeat import release_dead_node
from keryx.core.upkeep.views.invariants import check_invariants
from keryx.core.values.json_value import JsonValue
from keryx.errors import AgentFailed
from keryx.gateway.gateway import Gateway
from keryx.gateway.runtime.runtime import Runtime
from keryx.gateway.turns.loop import TurnLoop
from keryx.ids import Ids
from keryx.platforms.adapter import Capabilities
from keryx.store.database import Database, ReadTx
from keryx.testing.model_server import Asked, Call, ModelServer, Reply
from keryx.testing.platform import FakePlatform
from keryx.tools.keryx.plugin import keryx_tools
from keryx.tools.tool import Tool, Toolbox
from tests.flow.agents.test_model_turns import RecordingTool, agent_on
from tests.flow.crashing_store import CrashingStore, crashes_expected
from tests.flow.running import Actor, last_text, let_in, running, said, until

GIVEN = "Another agent gave you this task."
Act = Callable[[Brief, Stage], Awaitable[Answer]]


def is_child(brief: Brief) -> bool:
    return GIVEN in last_text_said(brief)


def last_text_said(brief: Brief) -> str:
    """Return the text of the last message that is not a tool result."""
    said_last = [message for message in brief.messages if getattr(message, "role", "") == "user"]
    return said_last[-1].text  # type: ignore[union-attr]


async def delegated(stage: Stage, *tasks: dict[str, JsonValue]) -> list[str]:
    """Delegate tasks at once and return their results."""
    calls = tuple(
        ToolCallPart(call_id=f"call-{number}", name="delegate", arguments=task)
        for number, task in enumerate(tasks)
    )
    done = await stage.act(NewMessage(role="assistant", parts=calls))
    return [str(result.output) for result in done.results]


def family(child: Act, *tasks: dict[str, JsonValue]) -> Actor:
    """Return an agent that delegates the tasks and answers with their results; ``child`` works on each."""

    async def act(brief: Brief, stage: Stage) -> Answer:
        if is_child(brief):
            return await child(brief, stage)
        return said(" / ".join(await delegated(stage, *tasks)))

    return Actor(act)


@asynccontextmanager
async def narrow(
    store: Database, platform: FakePlatform, agent: Agent, tools: Sequence[Tool] = ()
) -> AsyncIterator[Gateway]:
    """Run a gateway that runs one turn at a time."""
    runtime = Runtime(database=store, settings=Settings(), ids=Ids(), clock=SystemClock(), holder="narrow")
    toolbox = Toolbox([*keryx_tools(store), *tools])
    gateway = Gateway(runtime, agent, toolbox, [platform.adapter()], turns_max=1)
    await gateway.start()
    try:
        yield gateway
    finally:
        await gateway.stop(seconds=1)


async def children(store: Database, *, person_id: int = 1) -> list[SessionId]:
    """Return the sessions of tasks: only the list of archived sessions contains them."""

    def look(tx: ReadTx) -> list[SessionId]:
        listed = {row.id for row in list_sessions(tx, person_id=person_id).rows}
        away = list_sessions(tx, person_id=person_id, where=SessionFilter(archived=True)).rows
        found = [row.id for row in away if branches.find_delegation(tx, row.id) is not None]
        assert not listed & set(found)
        return found

    return await store.read(look)


async def test_a_task_runs_in_its_parent_s_place_and_answers_only_its_parent(
    store: Database, platform: FakePlatform
) -> None:
    async def work(brief: Brief, stage: Stage) -> Answer:
        return said(f"42, of {len(brief.messages)} message")

    task: dict[str, JsonValue] = {
        "task": "Count the stars.",
        "context": "Tonight.",
        "tools": ["read_session"],
    }
    agent = family(work, task)
    async with narrow(store, platform, agent):
        platform.say("How many stars?")
        await until(lambda: bool(platform.shown))
        await until(lambda: len(agent.briefs) == 2)
    assert platform.said_to("1") == ["42, of 1 message"]
    assert len(platform.shown) == 1
    parent, child = agent.briefs
    assert [offer.name for offer in child.tools] == ["read_result", "read_session"]
    assert "Count the stars." in last_text(child)
    assert "Tonight." in last_text(child)
    assert await children(store) == [child.session_id]
    links = await store.read(lambda tx: branches.list_links(tx, child.session_id))
    assert [(link.kind, link.from_session_id) for link in links] == [("delegation", parent.session_id)]
    assert await store.read(check_invariants) == []


async def test_a_child_gets_no_tool_that_asks_or_messages_people_and_depth_is_limited(
    store: Database, platform: FakePlatform
) -> None:
    async def deeper(brief: Brief, stage: Stage) -> Answer:
        if "delegate" in {offer.name for offer in brief.tools}:
            return said(" / ".join(await delegated(stage, {"task": "And you?"})))
        return said("the bottom")

    agent = family(deeper, {"task": "Go down."})
    async with narrow(store, platform, agent):
        platform.say("Go.")
        await until(lambda: platform.said_to("1") == ["the bottom"])
    given = [{offer.name for offer in brief.tools} for brief in agent.briefs]
    assert {"ask_user", "send_message", "send_to_others", "delegate"} <= given[0]
    assert given[1] == given[0] - {"ask_user", "remember", "send_message", "send_to_others"}
    assert given[2] == given[1] - {"delegate"}


async def test_a_stop_reaches_delegated_tasks(store: Database, platform: FakePlatform) -> None:
    at_work, left = asyncio.Event(), asyncio.Event()

    async def hang(brief: Brief, stage: Stage) -> Answer:
        at_work.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.set()
        raise AssertionError

    async with narrow(store, platform, family(hang, {"task": "Hang."})) as gateway:
        platform.say("Go.")
        async with asyncio.timeout(20):
            await at_work.wait()
            platform.say("/stop")
            await left.wait()
        await until(lambda: not gateway.turns_running)
    assert (
        await store.read(lambda tx: [row[0] for row in tx.rows("overview.list_turns", person_id=1, limit=9)])
        == []
    )
    assert await store.read(check_invariants) == []


async def test_failed_and_refused_tasks_are_reported_to_the_parent(
    store: Database, platform: FakePlatform
) -> None:
    async def fail(brief: Brief, stage: Stage) -> Answer:
        if "silent" in last_text(brief):
            return Answer(message=None)
        if "long" in last_text(brief):
            return said("x" * 40_000)
        raise AgentFailed("the key is wrong")

    tasks: list[dict[str, JsonValue]] = [{"task": "Be silent."}, {"task": "Be long."}]
    tasks += [{"task": "Try.", "tools": ["read_sesion"]}, {"task": "Try.", "tools": "all"}, {"task": " "}]
    tasks += [{"task": f"Try {number}."} for number in range(4)]
    told: list[str] = []

    async def act(brief: Brief, stage: Stage) -> Answer:
        if is_child(brief):
            return await fail(brief, stage)
        told.extend(await delegated(stage, *tasks))
        return said("so it went")

    async with running(store, platform, Actor(act), tools=list(keryx_tools(store))):
        platform.say("Go.")
        await until(lambda: platform.said_to("1") == ["so it went"])
    assert told[0].startswith("It ended without a word. read_session shows the rest: ")
    assert told[1].startswith("xxx")
    assert len(told[1]) < 31_000
    assert (
        told[2] == "You have no tool 'read_sesion' to give along. Did you mean read_session or read_result?"
    )
    assert told[3] == "'tools' must be a list of texts."
    assert told[4] == "'task' is blank; give a text."
    assert all(each.startswith("The task was not done: the key is wrong. ") for each in told[5:8])
    assert told[8] == (
        "Nothing was delegated. A turn may delegate 8 tasks; do the rest here, or in the next turn."
    )
    # Only delegated tasks have sessions.
    assert len(await children(store)) == 5


async def test_a_terminal_runs_the_tasks_of_its_own_conversation(
    store: Database, platform: FakePlatform
) -> None:
    async def work(brief: Brief, stage: Stage) -> Answer:
        return said("done")

    runtime = Runtime(database=store, settings=Settings(), ids=Ids(), clock=SystemClock(), holder="terminal")
    heard = platform.say("Go.")
    accepted = await store.write(
        lambda tx: accept_message(tx, heard, settings=runtime.settings, ids=runtime.ids, commands=COMMANDS)
    )
    session_id = accepted.session_id  # type: ignore[union-attr]
    agent = family(work, {"task": "Work."})
    loop = TurnLoop(
        runtime, agent, Toolbox(keryx_tools(store, ids=runtime.ids)), session_id=session_id, turns_max=1
    )
    task = asyncio.create_task(loop.run())
    await until(lambda: len(agent.briefs) == 2)

    def is_quiet(tx: ReadTx) -> bool:
        return not tx.rows("overview.list_turns", person_id=1, limit=9)

    async with asyncio.timeout(20):
        while not await store.read(is_quiet):
            await store.changed(since=store.change_no, timeout_seconds=0.1)
    await loop.drain(5)
    await task
    assert [brief.session_id == session_id for brief in agent.briefs] == [True, False]


# ------------------------------------------------------------------------------------------ crashes


def play(asked: Asked) -> Reply:
    """Delegate once, then answer; the child calls a tool, then answers."""
    text = str(asked.messages)
    if GIVEN in text:
        has_run = any(message["role"] == "tool" for message in asked.messages)
        return Reply(text="forty-two") if has_run else Reply(calls=[Call(name="count")])
    results = [str(message["content"]) for message in asked.messages if message["role"] == "tool"]
    if results:
        return Reply(text=f"It is {results[0]}.")
    return Reply(calls=[Call(name="delegate", arguments={"task": "Count.", "tools": ["count"]})])


async def tell(store: Database, platform: FakePlatform, *, crash_at: int | None) -> bool:
    """Let a gateway crash, at a point or while the child works; let another continue. Return whether it crashed."""
    book: Counter[str] = Counter()
    crashing = CrashingStore(store)
    before = asyncio.all_tasks()
    async with ModelServer(play) as server:
        agent = agent_on(server)
        errand = RecordingTool("count", "idempotent", book)
        if crash_at is None:
            errand.may_end.clear()
        runtime = Runtime(
            database=crashing, settings=Settings(), ids=Ids(), clock=SystemClock(), holder="crashing"
        )
        tools = Toolbox([*keryx_tools(crashing), errand])
        await Gateway(runtime, agent, tools, [platform.adapter()], turns_max=1).start()
        if crash_at is not None:
            crashing.crash_at(crash_at)
        platform.say("Count.")
        await until(lambda: errand.at_work.is_set() if crash_at is None else _is_over(platform, crashing))
        crashing.crash_now()
        while loops := {
            each for each in asyncio.all_tasks() - before if each.get_name().startswith("keryx-")
        }:
            for task in loops:
                task.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
        await agent.close()
        await store.write(lambda tx: release_dead_node(tx, holder="crashing"))
        again = [*keryx_tools(store), RecordingTool("count", "idempotent", book)]
        async with running(store, platform, agent_on(server), tools=again):
            await until(lambda: bool(platform.shown))
    assert platform.said_to("1") == ["It is forty-two."], f"it crashed at {crash_at}"
    return crashing.crashed.is_set() or crash_at is None


def _is_over(platform: FakePlatform, crashing: CrashingStore) -> bool:
    return bool(platform.shown) or crashing.crashed.is_set()


async def test_after_a_crash_the_call_waits_for_its_existing_child(
    store: Database, platform: FakePlatform
) -> None:
    with crashes_expected():
        assert await tell(store, platform, crash_at=None)
    assert len(await children(store)) == 1
    assert await store.read(check_invariants) == []


@pytest.mark.slow
async def test_a_crash_anywhere_leads_to_one_child_and_one_answer(store: Database) -> None:
    has_crashed, place = True, 0
    with crashes_expected():
        while has_crashed:
            place += 1
            assert place < 30 * ATTEMPTS_MAX, "the number of crash points of a turn is limited"
            # A deduplicating platform, because this test is about turns and not about receipts.
            deduplicating = Capabilities(text_max=4_096, deduplicates=True)
            platform = FakePlatform(name=f"p{place}", capabilities=deduplicating)
            await let_in(store, platform, "ana")
            has_crashed = await tell(store, platform, crash_at=place)
            assert len(await children(store)) == place
    assert place > 20
    assert await store.read(check_invariants) == []
