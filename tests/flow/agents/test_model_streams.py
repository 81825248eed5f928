"""A model's stream through the real gateway on both databases: stopped or cut anywhere, and a model chosen by name."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from json import loads

import pytest

from keryx.clock import SECOND
from keryx.core.conversations.rules.message import Message, ToolResultPart, text_of
from keryx.core.conversations.views.session_list import list_sessions
from keryx.core.conversations.views.transcript import list_transcript
from keryx.core.turns.tables import turns
from keryx.core.turns.views.turn import show_prompt, text_so_far
from keryx.core.upkeep.views.invariants import check_invariants
from keryx.core.values.json_value import JsonValue
from keryx.core.values.model_name import PROVIDERS, nearest_names
from keryx.core.values.turn_states import TurnId
from keryx.store.database import Database, ReadTx
from keryx.testing.model_server import Asked, Call, ModelServer, Refusal, Reply
from keryx.testing.model_server.script import pieces
from keryx.testing.platform import FakePlatform
from keryx.tools.tool import ToolCall
from tests.flow.agents.test_model_turns import RecordingTool, agent_on, texts_of, transcript
from tests.flow.running import PATIENCE_SECONDS, running, until

SOON = 3 * SECOND
"""A generous limit for the promised second: an idle machine needs a tenth of it."""
FIRST = TurnId(1)
COUNT = " ".join(str(number) for number in range(400))


async def wait_for(store: Database, holds: Callable[[ReadTx], object]) -> None:
    """Wait until a condition holds in the store."""
    while True:
        since = store.change_no
        if await store.read(holds):
            return
        assert await store.changed(since=since, timeout_seconds=PATIENCE_SECONDS), "nothing more happened"


async def end_of(store: Database) -> turns.Turn:
    """Wait for the first turn to end, and return it."""
    await wait_for(store, lambda tx: turns.get_turn(tx, FIRST).ended_at is not None)
    return await store.read(lambda tx: turns.get_turn(tx, FIRST))


def assert_stopped_soon(turn: turns.Turn) -> None:
    assert turn.state == "stopped"
    assert turn.ended_at is not None
    assert turn.stop_requested_at is not None
    assert turn.ended_at - turn.stop_requested_at < SOON


# ------------------------------------------------------------------------------------------------ stops


async def test_a_stop_during_a_slow_answer_keeps_the_text_so_far_marked(
    store: Database, platform: FakePlatform
) -> None:
    async with (
        ModelServer([Reply(text=COUNT, pause_seconds=0.05)]) as server,
        running(store, platform, agent_on(server)),
    ):
        platform.say("Count.")
        await until(lambda: bool(server.requests))
        await wait_for(store, lambda tx: text_so_far(tx, FIRST))
        platform.say("/stop")
        assert_stopped_soon(await end_of(store))
    asked, partial = await transcript(store)
    assert asked.text == "Count."
    assert 0 < len(partial.text) < len(COUNT)
    assert COUNT.startswith(partial.text)
    assert partial.finish_reason == "interrupted"


async def test_a_stop_before_the_first_word_stores_no_answer(store: Database, platform: FakePlatform) -> None:
    async with (
        ModelServer([Reply(text="one", hang_after=0), Reply(text="Here.")]) as server,
        running(store, platform, agent_on(server)),
    ):
        platform.say("Count.")
        await server.hangs.wait()
        platform.say("/stop")
        assert_stopped_soon(await end_of(store))
        await until(server.left.is_set)
        platform.say("Still there?")
        await until(lambda: "Here." in platform.said_to("1"))
    assert texts_of(await transcript(store)) == [
        ("user", "Count."),
        ("user", "Still there?"),
        ("assistant", "Here."),
    ]


async def test_a_stop_while_a_tool_runs_ends_the_tool_and_records_its_state(
    store: Database, platform: FakePlatform
) -> None:
    book: Counter[str] = Counter()
    errand = RecordingTool("book", "once", book)
    errand.may_end.clear()
    async with (
        ModelServer([Reply(text="I book.", calls=[Call(name="book")])]) as server,
        running(store, platform, agent_on(server), tools=[errand]),
    ):
        platform.say("Book it.")
        await errand.at_work.wait()
        platform.say("/stop")
        assert_stopped_soon(await end_of(store))
    _, step, *results = await transcript(store)
    assert (step.text, book, len(server.requests)) == ("I book.", {"book": 1}, 1)
    (told,) = [part for each in results for part in each.parts if isinstance(part, ToolResultPart)]
    assert told.is_error
    assert await store.read(check_invariants) == []


# ------------------------------------------------------------------------------------------------- cuts

ANSWER = Reply(thinking="hm", text="Here it is.")
STEP = Reply(text="I note.", calls=[Call(name="note", arguments={"chat": "a long enough name"})])
WAYS = {
    f"{name} {'ends' if ends_early else 'is cut'} after {number}": replace(
        reply, cut_after=number, ends_early=ends_early
    )
    for name, reply in (("answer", ANSWER), ("step", STEP))
    for number in range(len(list(pieces(reply))) + 1)
    for ends_early in (False, True)
}
"""How the first answer in a chat is cut, by the text of its message."""


class Breaking:
    """Cuts the first answer in every chat in its own way, and answers the second request."""

    def __init__(self) -> None:
        self.broken: set[str] = set()

    def __call__(self, asked: Asked) -> Reply | Refusal:
        said = "\n".join(str(each.get("content")) for each in asked.messages)
        way = next(line for line in said.splitlines() if line in WAYS)
        if way not in self.broken:
            self.broken.add(way)
            return WAYS[way]
        has_called = any("tool_calls" in each for each in asked.messages)
        return STEP if way.startswith("step") and not has_called else ANSWER


class Note(RecordingTool):
    """Counts its calls in each conversation."""

    async def run(self, call: ToolCall) -> JsonValue:
        self._book[call.session_id] += 1
        return "noted"


async def test_an_answer_cut_anywhere_ends_as_one_answer_and_one_call(
    store: Database, platform: FakePlatform
) -> None:
    book: Counter[str] = Counter()
    script = Breaking()
    async with (
        ModelServer(script) as server,
        running(store, platform, agent_on(server), tools=[Note("note", "once", book)]),
    ):
        for way in WAYS:
            platform.say(way, chat=way)
        await until(lambda: len(platform.shown) >= len(WAYS), seconds=3 * PATIENCE_SECONDS)
    assert script.broken == set(WAYS)
    assert {way: platform.said_to(way) for way in WAYS} == {way: ["Here it is."] for way in WAYS}
    assert sorted(book.values()) == [1] * sum(way.startswith("step") for way in WAYS)
    assert await store.read(check_invariants) == []
    for messages in await transcripts(store):
        assert [text_of(each.parts) for each in messages if each.role == "assistant"][-1] == "Here it is."
        assert [each.finish_reason for each in messages].count("interrupted") == 0


async def transcripts(store: Database) -> list[list[Message]]:
    """Return all conversations of the owner."""

    def look(tx: ReadTx) -> list[list[Message]]:
        rows = list_sessions(tx, person_id=1, limit=100).rows
        return [list_transcript(tx, row.id, person_id=1, last=None) for row in rows]

    return await store.read(look)


# ------------------------------------------------------------------------------------ names and prompts


async def test_a_conversation_s_model_answers_from_the_next_turn_until_reset(
    store: Database, platform: FakePlatform
) -> None:
    async with (
        ModelServer(lambda asked: Reply(text=f"I am {asked.model}.")) as server,
        running(store, platform, agent_on(server)),
    ):

        async def say(text: str, reply: str) -> None:
            shown = len(platform.said_to("1"))
            platform.say(text)
            await until(lambda: len(platform.said_to("1")) > shown)
            assert platform.said_to("1")[-1] == reply

        await say("Who?", "I am scripted.")
        chosen = (
            "From the next turn on, openai:other answers here. /model none goes back to the configured model."
        )
        await say("/model openai:other", chosen)
        await say("Who?", "I am other.")
        await say("/model opnai:x", f"There is no provider 'opnai'. {nearest_names('opnai', PROVIDERS)}")
        await say("Who?", "I am other.")
        await say("/model none", "From the next turn on, the configured model answers here.")
        await say("Who?", "I am scripted.")


@pytest.mark.parametrize("reply", [Reply(text="Here."), Refusal(status=401)], ids=["answered", "failed"])
async def test_the_system_prompt_and_the_tools_of_a_turn_can_be_read_again(
    store: Database, platform: FakePlatform, reply: Reply | Refusal
) -> None:
    tools = [RecordingTool("book", "once", Counter())]
    async with ModelServer([reply]) as server, running(store, platform, agent_on(server), tools=tools):
        platform.say("Hello.")
        await until(lambda: bool(platform.said_to("1")))

    ran_with = await store.read(lambda tx: show_prompt(tx, FIRST, person_id=1))
    assert ran_with is not None
    (asked,) = server.requests
    system, said = (str(each["content"]) for each in asked.messages)
    assert (ran_with.model, ran_with.prompt.startswith(system)) == ("openai:scripted", True)
    context, _, rest = said.rpartition("\n\n")
    assert ran_with.prompt == system + context
    assert rest.partition("\n")[0] == ran_with.time
    assert loads(ran_with.tools) == [["book", "An errand.", {"type": "object"}]]
