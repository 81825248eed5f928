"""Long conversations through the real gateway on both databases: turns keep working, and search finds every message."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from keryx.agents.model.agent import ModelAgent
from keryx.agents.model.choice import ModelChoice
from keryx.agents.model.contract import Access
from keryx.agents.model.guide import Guide
from keryx.agents.model.summary_prompt import INSTRUCTIONS
from keryx.clock import SystemClock
from keryx.config import Settings
from keryx.core.context.rules.cover import Cover
from keryx.core.context.tables.covers import list_covers
from keryx.core.context.views.usage import show_context_usage
from keryx.core.conversations.rules.archive import Archive, MessageLine, SessionLine
from keryx.core.conversations.rules.message import ToolCallPart, ToolResultPart, encode_parts
from keryx.core.conversations.rules.part import Part, TextPart
from keryx.core.conversations.transactions.import_session import import_session
from keryx.core.conversations.views.transcript import list_transcript, model_messages
from keryx.core.people.tables import people
from keryx.core.search.transactions.index_messages import index_step
from keryx.core.search.views.search import SearchResult, search
from keryx.core.upkeep.transactions.record_heartbeat import release_dead_node
from keryx.core.upkeep.views.invariants import check_invariants
from keryx.gateway.gateway import Gateway
from keryx.gateway.runtime.runtime import Runtime
from keryx.ids import Ids
from keryx.platforms.adapter import Capabilities
from keryx.store.database import Database, ReadTx, Tx
from keryx.testing.model_server import Asked, ModelServer, Reply
from keryx.testing.platform import FakePlatform
from keryx.tools.tool import Toolbox
from tests.flow.crashing_store import CrashingStore, crashes_expected
from tests.flow.running import Actor, let_in, running, until

MESSAGES = 5_000
WINDOW = 32_000
LONG = "lorem ipsum dolor sit amet " * 400
"""About 2,700 tokens."""
CRASH_POINTS_MAX = 40


def agent_on(server: ModelServer, *, window: int = WINDOW) -> ModelAgent:
    variables = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.openai_url}
    return ModelAgent(
        ModelChoice(model="openai:scripted", context_tokens=window),
        Access(variables=variables, timeout_seconds=60),
        otherwise=Guide(),
        clock=SystemClock(),
    )


def is_summary(asked: Asked) -> bool:
    return INSTRUCTIONS[:40] in str(asked.messages)


def play(asked: Asked) -> Reply:
    return Reply(text="They spoke of many things.") if is_summary(asked) else Reply(text="Yes.")


def line(seq: int) -> MessageLine:
    """Return a message with ``unison`` and a word of its own; every tenth exchange calls a tool."""
    words = f"unison own{seq} " + "some more words of an old talk " * 7
    parts: tuple[Part, ...] = (TextPart(text=words),)
    place = seq % 20
    if place == 2:
        parts = (*parts, ToolCallPart(call_id="call_1", name="look", arguments={"at": "it"}))
    if place == 3:
        parts = (ToolResultPart(call_id="call_1", name="look", output=words),)
    role = {0: "assistant", 2: "assistant", 3: "tool"}.get(place, "user" if seq % 2 else "assistant")
    return MessageLine(branch_no=0, seq=seq, role=role, body=encode_parts(parts), created_at=seq)  # type: ignore[arg-type]


async def bring(store: Database, platform: FakePlatform, messages: int) -> str:
    """Store a long conversation of the owner; return its id."""
    session = SessionLine(
        id="20200101_000000_0000abcd",
        source=platform.source("ana", chat="1"),
        started_at=1,
        last_active_at=messages,
    )
    archive = Archive(session=session, messages=tuple(map(line, range(1, messages + 1))))

    def work(tx: Tx) -> str:
        owner = people.find_owner(tx)
        assert owner is not None
        return import_session(tx, Ids(), archive, owner=owner)

    return await store.write(work)


async def resume(platform: FakePlatform, session_id: str) -> None:
    platform.say(f"/resume {session_id}")
    await until(lambda: any("Going on with" in text for text in platform.said_to("1")))


async def ask(platform: FakePlatform, text: str) -> None:
    before = platform.said_to("1").count("Yes.")
    platform.say(text)
    await until(lambda: platform.said_to("1").count("Yes.") > before, seconds=60)


async def covers_of(store: Database, session_id: str) -> list[Cover]:
    return await store.read(lambda tx: list_covers(tx, session_id))


async def find_all(store: Database, word: str) -> set[int]:
    """Return the numbers of all messages that a search for a word finds."""
    while (await store.write_index(index_step)).indexed:
        pass
    found: set[int] = set()
    after: str | None = None
    while True:
        page = await store.read(_page(word, after))
        found |= {hit.seq for each in page.sessions for hit in each.hits}
        after = page.next
        if after is None:
            return found


def _page(word: str, after: str | None) -> Callable[[ReadTx], SearchResult]:
    return lambda tx: search(tx, word, person_id=1, limit=100, after=after, neighbours=0)


async def test_a_conversation_of_5000_messages_keeps_answering_and_search_finds_every_message(
    store: Database, platform: FakePlatform
) -> None:
    session_id = await bring(store, platform, MESSAGES)
    async with (
        ModelServer(play, window_tokens=WINDOW) as server,
        running(store, platform, agent_on(server)),
    ):
        await resume(platform, session_id)
        for number in range(14):
            await ask(platform, f"number{number} {LONG}")
        summaries = [asked for asked in server.requests if is_summary(asked)]
        assert len(server.requests) == 14 + len(summaries)
        assert server.refused == []
    assert len(summaries) >= 2, "the conversation filled up again"
    assert "They spoke of many things." in str(server.requests[-1].messages)
    covers = await covers_of(store, session_id)
    assert len(covers) == len(summaries)
    view = await store.read(lambda tx: model_messages(tx, session_id, person_id=1))
    assert isinstance(view[0], Cover)
    assert view[0].last_seq > MESSAGES
    usage = await store.read(lambda tx: show_context_usage(tx, session_id, person_id=1))
    assert usage is not None
    assert 0 < usage.total < WINDOW
    assert await find_all(store, "unison") == set(range(1, MESSAGES + 1))
    (exactly,) = await find_all(store, "own2500")
    assert exactly == 2_500
    everything = await store.read(lambda tx: list_transcript(tx, session_id, person_id=1, last=None))
    assert len(everything) == MESSAGES + 28
    assert await store.read(check_invariants) == []


async def test_a_context_window_that_is_smaller_than_configured_is_detected(
    store: Database, platform: FakePlatform
) -> None:
    session_id = await bring(store, platform, 400)
    async with (
        ModelServer(play, window_tokens=6_000) as server,
        running(store, platform, agent_on(server, window=1_000_000)),
    ):
        await resume(platform, session_id)
        await ask(platform, "And now?")
        assert server.refused
    assert await covers_of(store, session_id)


async def test_a_person_previews_a_summary_makes_it_and_undoes_it(
    store: Database, platform: FakePlatform
) -> None:
    session_id = await bring(store, platform, 100)

    async def told(command: str) -> str:
        before = len(platform.said_to("1"))
        platform.say(command)
        await until(lambda: len(platform.said_to("1")) > before)
        return platform.said_to("1")[-1]

    async with ModelServer(play) as server, running(store, platform, agent_on(server)):
        await resume(platform, session_id)
        assert (await told("/compress preview")).startswith("92 messages, about ")
        assert server.requests == []
        done = await told("/compress own7")
        assert done.startswith("92 messages are now a summary of 27 tokens instead of ")
        assert "own7" in str(server.requests[0].messages)
        assert "too little to summarise" in await told("/compress preview")
        assert "too little to summarise" in await told("/compress again")
        assert "Context at the last question" in await told("/usage")
        assert "is taken back" in await told("/compress undo")
        assert await covers_of(store, session_id) == []
        await ask(platform, "Is all there?")
        assert "own7 " in str(server.requests[-1].messages)
    transcript = await store.read(lambda tx: list_transcript(tx, session_id, person_id=1, last=None))
    assert len(transcript) == 102, "a summary is no part of the transcript, and neither is what is told of it"


async def test_a_pinned_message_is_still_in_the_context_after_a_summary(
    store: Database, platform: FakePlatform
) -> None:
    session_id = await bring(store, platform, 100)

    async def told(command: str) -> str:
        before = len(platform.said_to("1"))
        platform.say(command)
        await until(lambda: len(platform.said_to("1")) > before)
        return platform.said_to("1")[-1]

    async with ModelServer(play) as server, running(store, platform, agent_on(server)):
        await resume(platform, session_id)
        assert "Message 43 is pinned" in await told("/pin 43")
        assert "Pinned messages between them stay too." in await told("/compress preview")
        # Pinning 43, the result of a call, also keeps the call 42.
        assert (await told("/compress")).startswith("90 messages are now a summary")
        await ask(platform, "What do you know?")
        asked = str(server.requests[-1].messages)
    assert "own42 " in asked
    assert "own43 " in asked
    assert "own41 " not in asked
    assert "own44 " not in asked
    ends = [(each.first_seq, each.last_seq) for each in await covers_of(store, session_id)]
    assert ends == [(1, 41), (44, 92)]
    assert await store.read(check_invariants) == []


async def test_an_agent_that_does_not_summarise_is_reported(store: Database, platform: FakePlatform) -> None:
    async with running(store, platform, Actor()):
        platform.say("Hello.")
        await until(lambda: bool(platform.said_to("1")))
        platform.say("/compress")
        await until(lambda: len(platform.said_to("1")) > 1)
    assert "nothing was summarised" in platform.said_to("1")[-1]


# ----------------------------------------------------------------------------------------- crash points


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The outcome of a story."""

    crashed: bool
    answers: int
    covers: list[Cover]


async def tell(store: Database, *, crash_at: int) -> Told:
    """Let a gateway summarise, answer and crash meanwhile; then let another one continue."""
    platform = FakePlatform(name=f"p{crash_at}", capabilities=Capabilities(text_max=4_096, deduplicates=True))
    await let_in(store, platform, "ana")
    session_id = await bring(store, platform, 40)
    crashing = CrashingStore(store)

    def answers() -> int:
        return platform.said_to("1").count("Yes.")

    def answer(asked: Asked) -> Reply:
        if is_summary(asked):
            crashing.crash_at(crash_at)  # earlier crash points are those of every turn
        return play(asked)

    async with ModelServer(answer) as server:
        async with running(store, platform, agent_on(server)):
            await resume(platform, session_id)
        before = asyncio.all_tasks()
        runtime = Runtime(
            database=crashing, settings=Settings(), ids=Ids(), clock=SystemClock(), holder="crashing"
        )
        agent = agent_on(server, window=2_000)
        await Gateway(runtime, agent, Toolbox([]), [platform.adapter()]).start()
        platform.say("And now?")
        await until(lambda: bool(answers()) or crashing.crashed.is_set())
        crashing.crash_now()
        while loops := {
            each for each in asyncio.all_tasks() - before if each.get_name().startswith("keryx-")
        }:
            for task in loops:
                task.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
        await agent.close()
        await store.write(lambda tx: release_dead_node(tx, holder="crashing"))
        async with running(store, platform, agent_on(server, window=2_000)):
            await until(lambda: bool(answers()))
    return Told(
        crashed=crashing.crashed.is_set(), answers=answers(), covers=await covers_of(store, session_id)
    )


async def test_a_crash_during_a_summary_leads_to_one_answer_and_one_whole_summary(
    store: Database,
) -> None:
    crash_at, has_crashed = 0, True
    with crashes_expected():
        while has_crashed:
            crash_at += 1
            assert crash_at < CRASH_POINTS_MAX, "the number of crash points of a turn is limited"
            told = await tell(store, crash_at=crash_at)
            has_crashed = told.crashed
            assert told.answers == 1, f"it crashed at {crash_at}"
            assert [cover.summary for cover in told.covers] == ["They spoke of many things."]
    assert crash_at > 4, "a turn has more crash points than this"
    assert await store.read(check_invariants) == []
