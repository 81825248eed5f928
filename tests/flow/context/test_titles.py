"""A conversation gets its title from the model that answers in it, over real HTTP, without a delay for anyone."""

import asyncio
from dataclasses import dataclass, field

from keryx.agents.model.guide import Guide
from keryx.config import Settings
from keryx.core.conversations.views.session_list import Session, list_sessions
from keryx.core.people.tables import people
from keryx.core.turns.tables import inbox
from keryx.core.upkeep.views.invariants import check_invariants
from keryx.store.database import Database, ReadTx
from keryx.testing.model_server import Asked, ModelServer, Refusal, Reply
from keryx.testing.platform import FakePlatform
from tests.flow.agents.test_model_turns import agent_on
from tests.flow.running import PATIENCE_SECONDS, running, until

TITLES = Settings(titles=True)


@dataclass
class Script:
    """Answers questions with a word, and title requests as planned."""

    titles: list[Reply | Refusal]
    asked: list[Asked] = field(default_factory=list)

    def __call__(self, asked: Asked) -> Reply | Refusal:
        if "Name this conversation" in str(asked.messages):
            self.asked.append(asked)
            return self.titles.pop(0)
        return Reply(text="Yes.")


async def the_session(store: Database) -> Session:
    def look(tx: ReadTx) -> Session:
        owner = people.find_owner(tx)
        assert owner is not None
        [session] = list_sessions(tx, person_id=owner.id).rows
        return session

    return await store.read(look)


async def until_named(store: Database, title: str) -> Session:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            since = store.change_no
            session = await the_session(store)
            if session.title == title:
                return session
            await store.changed(since=since, timeout_seconds=1)


async def test_the_model_names_the_conversation_after_the_first_exchange(
    store: Database, platform: FakePlatform
) -> None:
    script = Script([Reply(text='"A trip to Rome."', input_tokens=40, output_tokens=6, thinking_tokens=2)])
    async with (
        ModelServer(script) as server,
        running(store, platform, agent_on(server), settings=TITLES),
    ):
        platform.say("Can we go to Rome? " + "x" * 5_000)
        await until(lambda: len(platform.shown) == 1)
        session = await until_named(store, "A trip to Rome")
        platform.say("And then?")
        await until(lambda: platform.said_to("1") == ["Yes.", "Yes."])
    [asked] = script.asked
    assert len(str(asked.messages)) < 3_000, "no more is sent than shows what it is about"
    assert "tools" not in asked.body
    assert (session.title_by, session.message_count, session.thinking_tokens) == ("model", 2, 2)
    assert session.input_tokens == 10 + 40
    assert await store.read(check_invariants) == []


async def test_a_title_request_that_hangs_does_not_delay_the_next_answer(
    store: Database, platform: FakePlatform
) -> None:
    script = Script([Reply(text="never ends", hang_after=1), Reply(text="A trip to Rome")])
    async with (
        ModelServer(script) as server,
        running(store, platform, agent_on(server), settings=TITLES),
    ):
        platform.say("Can we go to Rome?")
        await server.hangs.wait()
        platform.say("And then?")
        await until(lambda: platform.said_to("1") == ["Yes.", "Yes."])
        await until_named(store, "A trip to Rome")
    assert len(script.asked) == 2


async def test_a_stopping_gateway_does_not_wait_for_a_title_and_the_next_one_asks_again(
    store: Database, platform: FakePlatform
) -> None:
    script = Script([Reply(text="never ends", hang_after=1), Reply(text="A trip to Rome")])
    async with ModelServer(script) as server:
        async with running(store, platform, agent_on(server), settings=TITLES) as gateway:
            platform.say("Can we go to Rome?")
            await server.hangs.wait()
            began = asyncio.get_running_loop().time()
            await gateway.stop(seconds=600)
            assert asyncio.get_running_loop().time() - began < 60
        async with running(store, platform, agent_on(server), settings=TITLES):
            await until_named(store, "A trip to Rome")
    assert platform.said_to("1") == ["Yes."]


async def test_a_refused_title_request_keeps_the_first_words_as_title_without_a_notice(
    store: Database, platform: FakePlatform
) -> None:
    script = Script([Refusal(status=400)])
    async with (
        ModelServer(script) as server,
        running(store, platform, agent_on(server), settings=TITLES) as gateway,
    ):
        platform.say("Can we go to Rome?")
        await until(lambda: gateway.metrics.turns_ended["failed"] == 1)
    session = await the_session(store)
    assert (session.title, session.title_by) == ("Can we go to Rome?", "text")
    assert platform.said_to("1") == ["Yes."]


async def test_the_guide_makes_no_title(store: Database, platform: FakePlatform) -> None:
    async with running(store, platform, Guide(), settings=TITLES):
        platform.say("hello")
        await until(lambda: len(platform.shown) == 1)
    session = await the_session(store)
    known = f"title:{session.id}"
    asked = await store.read(lambda tx: inbox.find_by_ref(tx, platform="title", account="", ref=known))
    assert (session.title_by, asked) == ("text", None)


async def test_no_title_is_requested_where_titles_are_off(store: Database, platform: FakePlatform) -> None:
    script = Script([])
    async with ModelServer(script) as server, running(store, platform, agent_on(server)):
        platform.say("hello")
        await until(lambda: len(platform.shown) == 1)
        platform.say("and?")
        await until(lambda: len(platform.shown) == 2)
    assert script.asked == []
