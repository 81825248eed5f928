"""Turns that end without an answer: failed, stopped, rolled back, handed back, or taken over."""

import asyncio
from collections.abc import Mapping

import pytest

from keryx.agents.agent import Answer, Brief, Stage
from keryx.core.conversations.rules.message import NewMessage, TextPart, ToolCallPart, ToolResultPart
from keryx.core.turns.rules.tool_offer import ToolOffer
from keryx.core.values.json_value import JsonValue
from keryx.core.values.turn_states import StepEffect
from keryx.errors import AgentFailed, ToolFailed
from keryx.store.database import Database
from keryx.testing.platform import FakePlatform
from keryx.tools.tool import ToolCall
from tests.flow.running import Actor, last_text, running, said, until


class RecordingTool:
    """A tool that logs its runs, and returns or fails as planned."""

    def __init__(self, name: str, effect: StepEffect, *, fails_with: Exception | None = None) -> None:
        self._fails_with = fails_with
        self.keys: list[str] = []
        self.at_work = asyncio.Event()
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.offer = ToolOffer(name=name, description="An errand.", parameters={}, effect=effect)

    async def run(self, call: ToolCall) -> JsonValue:
        self.keys.append(call.key)
        self.at_work.set()
        await self.may_end.wait()
        if self._fails_with is not None:
            raise self._fails_with
        return "done"

    def question(self, call: ToolCall) -> str:  # noqa: ARG002 - the same whatever it is used for
        return f"May I run {self.offer.name}?"

    def pattern(self, call: ToolCall) -> str | None:  # noqa: ARG002
        return None


def calling(*names: str, arguments: "Mapping[str, JsonValue] | str | None" = None) -> Actor:
    """Return an agent that makes these calls at once and answers with their results."""

    async def act(brief: Brief, stage: Stage) -> Answer:
        told = [
            str(part.output)
            for message in brief.messages
            if hasattr(message, "parts")
            for part in message.parts
            if isinstance(part, ToolResultPart)
        ]
        if told:
            return said(" / ".join(told))
        given: JsonValue = (
            {} if arguments is None else arguments if isinstance(arguments, str) else dict(arguments)
        )
        calls = [
            ToolCallPart(call_id=f"{name}-{number}", name=name, arguments=given)
            for number, name in enumerate(names)
        ]
        await stage.think("which?")
        done = await stage.act(NewMessage(role="assistant", parts=(TextPart(text="I try."), *calls)))
        return said(" / ".join(str(result.output) for result in done.results))

    return Actor(act)


async def test_a_failure_gets_a_notice_in_the_chat(store: Database, platform: FakePlatform) -> None:
    async def fail(brief: Brief, stage: Stage) -> Answer:
        raise AgentFailed("the key is wrong")

    async with running(store, platform, Actor(fail)):
        platform.say("hello")
        await until(lambda: len(platform.shown) == 1)
    assert platform.said_to("1") == ["I could not answer: the key is wrong\n/retry tries again."]


async def test_a_temporary_failure_is_retried_and_reported_after_three_attempts(
    store: Database, platform: FakePlatform
) -> None:
    async def fail(brief: Brief, stage: Stage) -> Answer:
        raise AgentFailed("the provider is overloaded", retry_after=1)

    agent = Actor(fail)
    async with running(store, platform, agent):
        platform.say("hello")
        await until(lambda: len(platform.shown) == 1)
    assert len(agent.briefs) == 3
    assert platform.said_to("1") == ["I could not answer: the provider is overloaded\n/retry tries again."]


async def test_a_turn_is_retried_after_a_bug_in_the_agent(
    store: Database, platform: FakePlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keryx.gateway.turns.loop.INTERNAL_ERROR_RETRY", 1)

    async def break_once(brief: Brief, stage: Stage) -> Answer:
        if len(agent.briefs) == 1:
            raise ZeroDivisionError
        return said("better now")

    agent = Actor(break_once)
    async with running(store, platform, agent):
        platform.say("hello")
        await until(lambda: len(platform.shown) == 1)
    assert platform.said_to("1") == ["better now"]


async def test_each_call_has_one_result_whatever_happens(store: Database, platform: FakePlatform) -> None:
    tools = [
        RecordingTool("fetch", "once"),
        RecordingTool("look", "pure"),
        RecordingTool("refuse", "pure", fails_with=ToolFailed("not today")),
        RecordingTool("crash", "idempotent", fails_with=ZeroDivisionError()),
    ]
    async with running(
        store, platform, calling("fetch", "look", "refuse", "crash", "lok"), tools=list(tools)
    ):
        platform.say("go")
        await until(lambda: len(platform.shown) == 1)
    (text,) = platform.said_to("1")
    assert text.startswith(
        "done / done / not today / The tool failed; the log says why. / There is no tool 'lok'."
    )
    assert [len(tool.keys) for tool in tools] == [1, 1, 1, 1]


async def test_arguments_that_are_no_object_are_an_error_for_the_agent(
    store: Database, platform: FakePlatform
) -> None:
    errand = RecordingTool("fetch", "once")
    async with running(store, platform, calling("fetch", arguments="{broken"), tools=[errand]):
        platform.say("go")
        await until(lambda: len(platform.shown) == 1)
    assert "not a JSON object" in platform.said_to("1")[0]
    assert errand.keys == []


async def test_a_denied_call_does_not_run(store: Database, platform: FakePlatform) -> None:
    errand = RecordingTool("send", "ask")
    async with running(store, platform, calling("send"), tools=[errand]) as gateway:
        platform.say("go")
        await until(lambda: len(platform.shown) == 1 and not gateway.turns_running)
        assert platform.shown[0].text.startswith("May I run send?\n")
        platform.say("/deny")
        await until(lambda: len(platform.shown) == 3)
    assert "the person who was asked did not allow it" in "".join(platform.said_to("1"))
    assert errand.keys == []


async def test_a_message_that_interrupts_stops_the_turn_and_is_answered(
    store: Database, platform: FakePlatform
) -> None:
    at_work = asyncio.Event()

    async def linger(brief: Brief, stage: Stage) -> Answer:
        if last_text(brief) == "first":
            await stage.say("Well, ")
            at_work.set()
            await asyncio.sleep(60)
        return said(f"re {last_text(brief)}")

    async with running(store, platform, Actor(linger)):
        platform.say("first")
        await at_work.wait()
        platform.say("!interrupt second")
        await until(lambda: platform.said_to("1")[-1:] == ["re second"])


async def test_a_rollback_begins_again_with_both_messages(store: Database, platform: FakePlatform) -> None:
    at_work = asyncio.Event()

    async def linger(brief: Brief, stage: Stage) -> Answer:
        if len(agent.briefs) == 1:
            await stage.say("Well, ")
            at_work.set()
            await asyncio.sleep(60)
        texts = [message.text for message in brief.messages if hasattr(message, "text")]
        return said(" + ".join(texts))

    agent = Actor(linger)
    async with running(store, platform, agent):
        platform.say("first")
        await at_work.wait()
        platform.say("!rollback second")
        await until(lambda: platform.said_to("1")[-1:] == ["first + second"])


async def test_a_stop_between_steps_ends_the_turn(store: Database, platform: FakePlatform) -> None:
    errand = RecordingTool("fetch", "once")
    errand.may_end.clear()
    async with running(store, platform, calling("fetch"), tools=[errand]) as gateway:
        platform.say("go")
        await errand.at_work.wait()
        platform.say("/stop")
        await until(lambda: not gateway.turns_running)
    assert errand.keys != []


async def test_a_stopping_gateway_hands_its_turns_to_the_next(
    store: Database, platform: FakePlatform
) -> None:
    at_work = asyncio.Event()

    async def linger(brief: Brief, stage: Stage) -> Answer:
        at_work.set()
        await asyncio.sleep(60)
        return said("never")

    async with running(store, platform, Actor(linger)):
        platform.say("hello")
        await at_work.wait()
    async with running(store, platform, Actor(), holder="node-2"):
        await until(lambda: len(platform.shown) == 1)
    assert platform.said_to("1") == ["You said: hello"]


async def test_the_next_gateway_does_not_repeat_a_once_call_that_started(
    store: Database, platform: FakePlatform
) -> None:
    once, pure = RecordingTool("fetch", "once"), RecordingTool("look", "pure")
    once.may_end.clear()
    pure.may_end.clear()
    async with running(store, platform, calling("fetch", "look"), tools=[once, pure]):
        platform.say("go")
        await once.at_work.wait()
        await pure.at_work.wait()
    once.may_end.set()
    pure.may_end.set()
    async with running(store, platform, calling("fetch", "look"), tools=[once, pure], holder="node-2"):
        await until(lambda: len(platform.shown) == 1)
    assert (len(once.keys), len(pure.keys)) == (1, 2)
    assert "unknown whether this ran" in platform.said_to("1")[0]


async def test_a_stop_works_while_the_gateway_drains(store: Database, platform: FakePlatform) -> None:
    at_work = asyncio.Event()

    async def linger(brief: Brief, stage: Stage) -> Answer:
        at_work.set()
        await asyncio.sleep(60)
        return said("never")

    async with running(store, platform, Actor(linger)) as gateway:
        platform.say("hello")
        await at_work.wait()
        ending = asyncio.create_task(gateway.stop(seconds=20))
        await asyncio.sleep(0)
        platform.say("/stop")
        await asyncio.wait_for(ending, 10)


async def test_an_answer_during_the_drain_is_sent_before_the_gateway_ends(
    store: Database, platform: FakePlatform
) -> None:
    at_work, may_end = asyncio.Event(), asyncio.Event()

    async def linger(brief: Brief, stage: Stage) -> Answer:
        at_work.set()
        await may_end.wait()
        return said("done")

    async with running(store, platform, Actor(linger)) as gateway:
        platform.say("hello")
        await at_work.wait()
        ending = asyncio.create_task(gateway.stop(seconds=20))
        await asyncio.sleep(0)
        may_end.set()
        await asyncio.wait_for(ending, 10)
        assert platform.said_to("1") == ["done"]


async def test_an_idle_gateway_writes_nothing(store: Database, platform: FakePlatform) -> None:
    async with running(store, platform, Actor()):
        platform.say("hello")
        await until(lambda: len(platform.shown) == 1)
        await asyncio.sleep(0.5)
        before = store.change_no
        await asyncio.sleep(1.5)
        # Recovery looks every two seconds.
        assert store.change_no - before <= 5
