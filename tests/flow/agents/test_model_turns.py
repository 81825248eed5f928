"""A model's turns through the real gateway on both databases: steps, stops, steering, cuts, and crashes."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from keryx.agents.model.agent import ModelAgent
from keryx.agents.model.choice import ModelChoice
from keryx.agents.model.contract import Access
from keryx.agents.model.guide import Guide
from keryx.clock import SystemClock
from keryx.config import BusySettings, Settings
from keryx.core.context.views.usage import show_usage
from keryx.core.conversations.rules.message import Message, ThinkingPart, ToolCallPart, ToolResultPart
from keryx.core.conversations.views.session_list import list_sessions
from keryx.core.conversations.views.transcript import list_transcript
from keryx.core.people.tables import people
from keryx.core.turns.rules.tool_offer import ToolOffer
from keryx.core.turns.rules.turn import UNKNOWN_RESULT
from keryx.core.upkeep.transactions.record_heartbeat import release_dead_node
from keryx.core.upkeep.views.invariants import check_invariants
from keryx.core.values.json_value import JsonValue
from keryx.core.values.turn_states import StepEffect
from keryx.gateway.gateway import Gateway
from keryx.gateway.runtime.runtime import Runtime
from keryx.ids import Ids
from keryx.platforms.adapter import Capabilities
from keryx.store.database import Database, ReadTx
from keryx.testing.model_server import Asked, Call, ModelServer, Refusal, Reply
from keryx.testing.platform import FakePlatform
from keryx.tools.tool import Toolbox, ToolCall
from tests.flow.crashing_store import CrashingStore, crashes_expected
from tests.flow.running import let_in, running, until

SOON_SECONDS = 3
"""A generous limit: an idle machine needs a tenth of it."""
CRASH_POINTS_MAX = 80
"""More crash points than a turn has; a story that never ends is a bug."""


class RecordingTool:
    """A tool that logs each run outside the gateway, with a crash point before and after."""

    def __init__(
        self, name: str, effect: StepEffect, book: "Counter[str]", place: Callable[[], None] = lambda: None
    ) -> None:
        self.offer = ToolOffer(
            name=name, description="An errand.", parameters={"type": "object"}, effect=effect
        )
        self._book = book
        self._place = place
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.at_work = asyncio.Event()

    async def run(self, call: ToolCall) -> JsonValue:  # noqa: ARG002 - the same whatever it is used for
        self._place()
        self._book[self.offer.name] += 1
        self.at_work.set()
        await self.may_end.wait()
        self._place()
        return f"{self.offer.name} is done"

    def question(self, call: ToolCall) -> str:  # noqa: ARG002
        return "May I?"

    def pattern(self, call: ToolCall) -> str | None:  # noqa: ARG002
        return None


def agent_on(server: ModelServer, choice: ModelChoice | None = None) -> ModelAgent:
    variables = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.openai_url}
    return ModelAgent(
        choice or ModelChoice(model="openai:scripted"),
        Access(variables=variables, timeout_seconds=20),
        otherwise=Guide(),
        clock=SystemClock(),
    )


async def transcript(store: Database) -> list[Message]:
    """Return all messages of the only conversation."""

    def look(tx: ReadTx) -> list[Message]:
        owner = people.find_owner(tx)
        assert owner is not None
        (session,) = list_sessions(tx, person_id=owner.id).rows
        return list_transcript(tx, session.id, person_id=owner.id, last=None)

    return await store.read(look)


def texts_of(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in messages if message.text]


async def test_a_turn_that_goes_in_circles_ends_and_tells_the_person_why(
    store: Database, platform: FakePlatform
) -> None:
    book: Counter[str] = Counter()
    circle = [Reply(calls=[Call(name="book", call_id=f"c{no}")]) for no in range(9)]
    async with (
        ModelServer(circle) as server,
        running(store, platform, agent_on(server), tools=[RecordingTool("book", "pure", book)]),
    ):
        platform.say("Book the hotel.")
        await until(lambda: any("in circles" in text for text in platform.said_to("1")))
    assert (book["book"], len(server.requests)) == (5, 5)
    results = [
        part for each in await transcript(store) for part in each.parts if isinstance(part, ToolResultPart)
    ]
    assert {part.output for part in results} == {"book is done"}, "people see the results as they were"


async def test_a_model_s_steps_thinking_and_usage_are_in_the_transcript(
    store: Database, platform: FakePlatform
) -> None:
    book: Counter[str] = Counter()
    script = [
        Reply(thinking="hm", text="I book it.", calls=[Call(name="book")], input_tokens=11, output_tokens=3),
        Reply(text="Booked.", input_tokens=20, cached_tokens=11, output_tokens=2),
    ]
    async with (
        ModelServer(script) as server,
        running(store, platform, agent_on(server), tools=[RecordingTool("book", "once", book)]),
    ):
        platform.say("Book the hotel.")
        await until(lambda: platform.said_to("1") == ["Booked."])
    asked, step, done, answer = await transcript(store)
    assert (asked.role, book) == ("user", {"book": 1})
    thought, _, call = step.parts
    assert isinstance(thought, ThinkingPart)
    assert isinstance(call, ToolCallPart)
    assert (thought.text, step.text, call.effect) == ("hm", "I book it.", "once")
    assert (step.input_tokens, step.output_tokens, answer.cached_tokens) == (11, 3, 11)
    (result,) = done.parts
    assert isinstance(result, ToolResultPart)
    assert (result.output, answer.finish_reason) == ("book is done", "stop")
    used = await store.read(lambda tx: show_usage(tx, person_id=1, since=0, until=SystemClock().now() + 1))
    assert used.models["openai:scripted"].input_tokens == 31


async def test_a_stop_takes_effect_soon_and_keeps_the_text(store: Database, platform: FakePlatform) -> None:
    async with (
        ModelServer([Reply(text="one two three", hang_after=2)]) as server,
        running(store, platform, agent_on(server)),
    ):
        platform.say("Count.")
        await server.hangs.wait()
        platform.say("/stop")
        await until(lambda: bool(platform.shown))
        began = asyncio.get_running_loop().time()
        async with asyncio.timeout(10):
            await server.left.wait()
        assert asyncio.get_running_loop().time() - began < SOON_SECONDS
    messages = await transcript(store)
    assert texts_of(messages) == [("user", "Count."), ("assistant", "one two")]
    assert messages[-1].finish_reason == "interrupted"
    # The provider does not report the usage of this answer, but bills it.
    assert messages[-1].input_tokens > 300
    assert messages[-1].output_tokens == 2


async def test_an_answer_that_reached_the_model_s_limit_is_marked(
    store: Database, platform: FakePlatform
) -> None:
    script = [Reply(text="one two", finish="length")]
    async with ModelServer(script) as server, running(store, platform, agent_on(server)):
        platform.say("Count.")
        await until(lambda: "".join(platform.said_to("1")) == "one two(cut off at the model's limit)")
    assert texts_of(await transcript(store))[-1] == ("assistant", "one two")


async def test_new_messages_are_read_at_the_next_step(store: Database, platform: FakePlatform) -> None:
    look = RecordingTool("look", "pure", Counter())
    look.may_end.clear()
    script = [Reply(calls=[Call(name="look")]), Reply(text="Both.")]
    settings = Settings(busy=BusySettings(default="steer"))
    async with (
        ModelServer(script) as server,
        running(store, platform, agent_on(server), tools=[look], settings=settings),
    ):
        platform.say("The hotel?")
        await look.at_work.wait()
        steered = platform.say("And the bar?")
        await until(lambda: steered.ref in platform.acknowledged)
        look.may_end.set()
        await until(lambda: platform.said_to("1") == ["Both."])
    assert "And the bar?" in str(server.requests[1].messages)
    assert len(server.requests) == 2


async def test_in_a_group_other_people_s_messages_do_not_use_the_asker_s_tools(
    store: Database, platform: FakePlatform
) -> None:
    book: Counter[str] = Counter()
    look, booking = RecordingTool("look", "once", Counter()), RecordingTool("book", "once", book)
    look.may_end.clear()
    script = [
        Reply(calls=[Call(name="look")]),
        Reply(text="Ana, it is free."),
        Reply(calls=[Call(name="book")]),
        Reply(text="Ben, I may not."),
    ]
    settings = Settings(busy=BusySettings(default="steer"))
    async with (
        ModelServer(script) as server,
        running(store, platform, agent_on(server), tools=[look, booking], settings=settings),
    ):
        platform.say("The hotel?", chat="trip", chat_type="group")
        await look.at_work.wait()
        for user, text in (("ana", "And the bar?"), ("ben", "Book it now!")):
            heard = platform.say(text, chat="trip", chat_type="group", user=user)
            await until(lambda heard=heard: heard.ref in platform.acknowledged)  # type: ignore[misc]
        look.may_end.set()
        await until(lambda: platform.said_to("trip") == ["Ana, it is free.", "Ben, I may not."])
    assert not book
    _, joined, others, _ = server.requests
    assert '"Ana" says: And the bar?' in str(joined.messages)
    assert "Book it now!" not in str(joined.messages)
    assert '"Ben" says: Book it now!' in str(others.messages)


async def test_an_answer_that_was_cut_off_is_retried_and_shown_once(
    store: Database, platform: FakePlatform
) -> None:
    book: Counter[str] = Counter()
    script = [
        Reply(calls=[Call(name="book")]),
        Reply(text="one two three", cut_after=2),
        Reply(text="Here it is."),
    ]
    async with (
        ModelServer(script) as server,
        running(store, platform, agent_on(server), tools=[RecordingTool("book", "once", book)]),
    ):
        platform.say("Go.")
        await until(lambda: platform.said_to("1") == ["Here it is."])
    assert book == {"book": 1}
    assert texts_of(await transcript(store)) == [("user", "Go."), ("assistant", "Here it is.")]


async def test_after_an_answer_was_cut_off_a_fallback_answers(
    store: Database, platform: FakePlatform
) -> None:
    def answer(asked: Asked) -> Reply:
        return Reply(text="one two", cut_after=1) if asked.model == "first" else Reply(text="I stand in.")

    choice = ModelChoice(model="openai:first", fallbacks=["openai:second"])
    async with ModelServer(answer) as server, running(store, platform, agent_on(server, choice)):
        platform.say("Go.")
        await until(lambda: platform.said_to("1") == ["I stand in."])
    assert [asked.model for asked in server.requests] == ["first", "second"]


async def test_a_failure_is_reported_in_the_chat(store: Database, platform: FakePlatform) -> None:
    async with ModelServer([Refusal(status=401)]) as server, running(store, platform, agent_on(server)):
        platform.say("Hello.")
        await until(lambda: bool(platform.shown))
    (told,) = platform.said_to("1")
    assert told.startswith(
        "I could not answer: openai refused the key. Set OPENAI_API_KEY in the environment"
    )
    assert told.endswith("\n/retry tries again.")


async def test_invalid_arguments_are_answered_and_the_model_retries(
    store: Database, platform: FakePlatform
) -> None:
    book: Counter[str] = Counter()
    script = [
        Reply(calls=[Call(name="book", arguments='{"at": ')]),
        Reply(calls=[Call(name="book", arguments={"at": "8"})]),
        Reply(text="Booked."),
    ]
    async with (
        ModelServer(script) as server,
        running(store, platform, agent_on(server), tools=[RecordingTool("book", "once", book)]),
    ):
        platform.say("Book it.")
        await until(lambda: platform.said_to("1") == ["Booked."])
    assert book == {"book": 1}
    assert "not a JSON object" in str(server.requests[1].messages)


# ----------------------------------------------------------------------------------------- crash points


def play(asked: Asked) -> Reply:
    """Call both tools at once, then look again, then answer, each as often as the conversation requires."""
    steps = sum("tool_calls" in message for message in asked.messages)
    both = [Call(name="book", call_id="call_1"), Call(name="look", call_id="call_2")]
    return [
        Reply(text="I book and look.", calls=both),
        Reply(calls=[Call(name="look", call_id="call_1")]),
        Reply(text="All done."),
    ][min(steps, 2)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The outcome of a story."""

    crashed: bool
    book: "Counter[str]"
    answers: list[str]
    was_unknown: bool
    """Whether the model was told that it is unknown whether a call ran."""


async def tell(store: Database, *, crash_at: int) -> Told:
    """Let a gateway answer one message and crash meanwhile; then let another one continue."""
    deduplicating = Capabilities(text_max=4_096, deduplicates=True)
    platform = FakePlatform(name=f"p{crash_at}", capabilities=deduplicating)
    await let_in(store, platform, "ana")
    book: Counter[str] = Counter()
    crashing = CrashingStore(store)

    def is_answered() -> bool:
        return bool(platform.shown)

    async with ModelServer(play) as server:
        await live(crashing, platform, agent_on(server), book, crash_at=crash_at, over=is_answered)
        await store.write(lambda tx: release_dead_node(tx, holder="crashing"))
        tools = [RecordingTool("book", "once", book), RecordingTool("look", "pure", book)]
        async with running(store, platform, agent_on(server), tools=tools):
            await until(is_answered)
        was_unknown = UNKNOWN_RESULT in str([asked.messages for asked in server.requests])
    return Told(
        crashed=crashing.crashed.is_set(), book=book, answers=platform.said_to("1"), was_unknown=was_unknown
    )


async def live(
    crashing: CrashingStore,
    platform: FakePlatform,
    agent: ModelAgent,
    book: "Counter[str]",
    *,
    crash_at: int,
    over: Callable[[], bool],
) -> None:
    """Run a gateway until it crashes or the story is over, and end all its tasks, as the end of a process does."""
    before = asyncio.all_tasks()
    tools = [
        RecordingTool("book", "once", book, crashing.point),
        RecordingTool("look", "pure", book, crashing.point),
    ]
    runtime = Runtime(
        database=crashing, settings=Settings(), ids=Ids(), clock=SystemClock(), holder="crashing"
    )
    await Gateway(runtime, agent, Toolbox(tools), [platform.adapter()]).start()
    crashing.crash_at(crash_at)
    platform.say("Book it.")
    await until(lambda: over() or crashing.crashed.is_set())
    crashing.crash_now()
    while loops := {task for task in asyncio.all_tasks() - before if task.get_name().startswith("keryx-")}:
        for task in loops:
            task.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
    await agent.close()


async def test_a_turn_with_two_tools_that_crashes_anywhere_repeats_nothing(store: Database) -> None:
    unknown = crash_at = 0
    has_crashed = True
    with crashes_expected():
        while has_crashed:
            crash_at += 1
            assert crash_at < CRASH_POINTS_MAX, "the number of crash points of a turn is limited"
            told = await tell(store, crash_at=crash_at)
            has_crashed = told.crashed
            assert told.book["book"] <= 1, f"once means once, also when it crashes at {crash_at}"
            assert told.answers == ["All done."], f"it crashed at {crash_at}"
            assert has_crashed or told.book == {"book": 1, "look": 2}
            unknown += told.was_unknown
    assert crash_at > 15, "a turn has more crash points than this"
    assert unknown >= 2, "it died between the start of `book` and its result"
    assert await store.read(check_invariants) == []
