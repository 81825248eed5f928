"""Messages through a running gateway: each is stored, answered and delivered once."""

import asyncio

from keryx.agents.agent import Answer, Brief, Stage
from keryx.agents.model.guide import SETUP, Guide
from keryx.clock import SECOND
from keryx.config import Settings
from keryx.core.context.rules.prompt import context_block, hashed_id
from keryx.core.conversations.rules.message import NewMessage, TextPart, ToolCallPart
from keryx.core.conversations.rules.session_key import ScopeSettings
from keryx.platforms.adapter import Capabilities, Outgoing
from keryx.store.database import Database
from keryx.testing.model_server import ModelServer, Reply
from keryx.testing.platform import FakePlatform, PlatformFault
from keryx.tools.keryx.plugin import keryx_tools
from tests.flow.agents.test_model_turns import agent_on
from tests.flow.running import Actor, let_in, running, said, until


async def test_a_message_is_answered_in_its_chat(store: Database, platform: FakePlatform) -> None:
    async with running(store, platform, Actor()):
        platform.say("hello", chat="1")
        platform.say("hi", chat="2", user="ben")
        await until(lambda: len(platform.shown) == 2)
    assert platform.said_to("1") == ["You said: hello"]
    assert platform.said_to("2") == ["You said: hi"]
    assert sorted(platform.acknowledged) == ["update-1", "update-2"]


async def test_a_redelivered_message_is_answered_once(store: Database, platform: FakePlatform) -> None:
    async with running(store, platform, Actor()):
        first = platform.say("hello")
        await until(lambda: len(platform.shown) == 1)
        platform.deliver(first)
        platform.say("and this")
        await until(lambda: len(platform.shown) == 2)
    assert platform.said_to("1") == ["You said: hello", "You said: and this"]


async def ask(platform: FakePlatform, text: str, *, chat: str) -> str:
    """Send a message in a chat and return the answer."""
    before = len(platform.said_to(chat))
    platform.say(text, chat=chat)
    await until(lambda: len(platform.said_to(chat)) > before)
    return platform.said_to(chat)[-1]


async def test_resume_opens_the_last_conversation_of_this_chat(
    store: Database, platform: FakePlatform
) -> None:
    async with running(store, platform, Actor()):
        await ask(platform, "here", chat="1")
        assert (
            await ask(platform, "/new", chat="1") == "Fresh conversation. /resume brings the last one back."
        )
        await ask(platform, "there", chat="2")
        assert await ask(platform, "/resume", chat="1") == "Going on with 'here'."
        # A conversation resumed from another chat belongs to this chat too. A new chat resumes the last of all.
        await ask(platform, "/resume there", chat="1")
        await ask(platform, "/new", chat="2")
        await ask(platform, "elsewhere", chat="2")
        await ask(platform, "/new", chat="1")
        assert await ask(platform, "/resume", chat="1") == "Going on with 'there'."
        assert await ask(platform, "/resume", chat="3") == "Going on with 'elsewhere'."


async def test_with_one_conversation_for_all_platforms_resume_opens_the_last_of_all(
    store: Database, platform: FakePlatform
) -> None:
    async with running(store, platform, Actor(), settings=Settings(scope=ScopeSettings(dm="person"))):
        await ask(platform, "older", chat="1")
        await ask(platform, "/new", chat="1")
        await ask(platform, "newer", chat="2")
        await ask(platform, "/new", chat="2")
        assert await ask(platform, "/resume", chat="1") == "Going on with 'newer'."


async def test_a_malformed_update_delays_no_other_update(store: Database, platform: FakePlatform) -> None:
    async with running(store, platform, Actor()):
        platform.send_malformed("{")
        platform.say("hello")
        await until(lambda: len(platform.shown) == 1)
    assert len(platform.acknowledged) == 2


async def test_a_stop_ends_a_running_turn(store: Database, platform: FakePlatform) -> None:
    speaking = asyncio.Event()

    async def talk_on(brief: Brief, stage: Stage) -> Answer:
        await stage.say("Once upon a time")
        speaking.set()
        await asyncio.sleep(60)
        return said("never")

    async with running(store, platform, Actor(talk_on)) as gateway:
        platform.say("tell me a story")
        await speaking.wait()
        platform.say("/stop")
        async with asyncio.timeout(2):
            await until(lambda: not gateway.turns_running)
        await until(lambda: len(platform.shown) == 1)
    assert "never" not in "".join(platform.said_to("1"))


async def test_previews_and_answer_are_one_message(store: Database) -> None:
    platform = FakePlatform(capabilities=Capabilities(text_max=4_096, edits=True, edit_every=SECOND // 10))
    await let_in(store, platform, "ana")

    async def speak_slowly(brief: Brief, stage: Stage) -> Answer:
        for _ in range(11):
            await stage.say("word after word, ")
            await asyncio.sleep(0.3)
        return said("word after word, and the end")

    async with running(store, platform, Actor(speak_slowly)):
        platform.say("speak")
        await until(lambda: bool(platform.shown) and platform.shown[0].text.endswith("the end"))
    (shown,) = platform.shown
    assert len(shown.texts) > 2


async def test_on_a_deduplicating_platform_a_preview_without_a_receipt_becomes_the_answer(
    store: Database,
) -> None:
    can = Capabilities(text_max=4_096, edits=True, edit_every=SECOND // 10, deduplicates=True)
    platform = FakePlatform(capabilities=can)
    await let_in(store, platform, "ana")
    faults: list[PlatformFault | None] = ["lose the receipt"]
    platform.before_send = lambda _: faults.pop(0) if faults else None

    async def speak_until_it_is_seen(brief: Brief, stage: Stage) -> Answer:
        while not platform.shown:
            await stage.say("word after word, word after word, ")
            await asyncio.sleep(0.3)
        return said("word after word, and the end")

    async with running(store, platform, Actor(speak_until_it_is_seen)):
        platform.say("speak")
        await until(lambda: bool(platform.shown) and platform.shown[0].text.endswith("the end"))
    (shown,) = platform.shown
    assert shown.text == "word after word, and the end"


async def test_after_a_lost_receipt_the_second_message_is_marked(
    store: Database, platform: FakePlatform
) -> None:
    faults: list[PlatformFault | None] = ["lose the receipt", None]
    platform.before_send = lambda _: faults.pop(0) if faults else None
    async with running(store, platform, Actor()):
        platform.say("hello")
        await until(lambda: len(platform.shown) == 2)
    assert platform.said_to("1") == ["You said: hello", "You said: hello\n(possibly repeated)"]


async def test_a_long_answer_continues_with_the_piece_that_failed(store: Database) -> None:
    platform = FakePlatform(capabilities=Capabilities(text_max=40))
    await let_in(store, platform, "ana")
    refused: list[str] = []

    def refuse_the_second(outgoing: Outgoing) -> PlatformFault | None:
        if outgoing.key.endswith("-1") and not refused:
            refused.append(outgoing.key)
            return "reject"
        return None

    platform.before_send = refuse_the_second

    async def tell(brief: Brief, stage: Stage) -> Answer:
        return said("\n\n".join(f"This is paragraph {number} of it." for number in range(3)))

    async with running(store, platform, Actor(tell)):
        platform.say("tell me")
        await until(lambda: len(platform.shown) == 3)
    assert platform.said_to("1") == [f"This is paragraph {number} of it." for number in range(3)]


async def test_the_guide_introduces_itself_and_answers_with_tools(
    store: Database, platform: FakePlatform
) -> None:
    async with running(store, platform, Guide(), tools=list(keryx_tools(store))):
        platform.say("hello there, how are you?")
        await until(lambda: len(platform.shown) == 1)
        assert platform.shown[0].text.startswith(SETUP)
        platform.say("search for hello")
        await until(lambda: len(platform.shown) == 2)
        assert "hello there" in platform.shown[1].text
        platform.say("/search hello")
        await until(lambda: len(platform.shown) == 3)
        assert "hello there" in platform.shown[2].text
        platform.say("and what else?")
        await until(lambda: len(platform.shown) == 4)
        assert platform.shown[3].text.startswith("No model answers here. To set a model up, run")
        assert "\n" not in platform.shown[3].text


async def test_no_model_reads_what_the_guide_answered(store: Database, platform: FakePlatform) -> None:
    async with running(store, platform, Guide(), tools=list(keryx_tools(store))):
        platform.say("hello there, how are you?")
        await until(lambda: len(platform.shown) == 1)
    async with ModelServer([Reply(text="Fine.")]) as server, running(store, platform, agent_on(server)):
        platform.say("And now?")
        await until(lambda: len(platform.shown) == 2)
    (asked,) = server.requests
    system, said = (str(each["content"]) for each in asked.messages)
    assert said.endswith("\nAnd now?")
    assert "hello there" not in said.replace('title: "hello there, how are you?"', ""), (
        "it is still the title"
    )
    assert "No model answers here" not in system + said


async def test_a_turn_waits_for_an_approval_and_continues(store: Database, platform: FakePlatform) -> None:
    async with running(store, platform, Guide(), tools=list(keryx_tools(store))) as gateway:
        platform.say("remember that I like tea")
        await until(lambda: len(platform.shown) == 1)
        assert "I like tea" in platform.shown[0].text
        await until(lambda: not gateway.turns_running)
        platform.say("/approve")
        await until(lambda: len(platform.shown) == 3)
        assert sorted(platform.said_to("1")[1:]) == ["Allowed.", "Kept."]
        platform.say("/memory")
        await until(lambda: len(platform.shown) == 4)
    assert "I like tea" in platform.shown[3].text


async def test_calls_run_and_a_steering_message_joins_at_the_next_step(
    store: Database, platform: FakePlatform
) -> None:
    at_work, go_on = asyncio.Event(), asyncio.Event()
    joined: list[str] = []

    async def work(brief: Brief, stage: Stage) -> Answer:
        at_work.set()
        await go_on.wait()
        call = ToolCallPart(call_id="c1", name="list_platforms", arguments={})
        done = await stage.act(NewMessage(role="assistant", parts=(TextPart(text="I look."), call)))
        joined.extend(
            part.text for message in done.joined for part in message.parts if isinstance(part, TextPart)
        )
        return said(str(done.results[0].output))

    async with running(store, platform, Actor(work), tools=list(keryx_tools(store))):
        platform.say("what is connected?")
        await at_work.wait()
        platform.say("!steer only the names")
        await until(lambda: len(platform.acknowledged) == 2)
        go_on.set()
        await until(lambda: len(platform.shown) == 1)
    assert joined == ["only the names"]
    assert platform.said_to("1") == ["fake"]


async def test_the_agent_gets_hashed_user_ids_if_the_owner_wants_it(
    store: Database, platform: FakePlatform
) -> None:
    actor = Actor()
    async with running(store, platform, actor, settings=Settings(id_salt="pepper")):
        platform.say("hello")
        await until(lambda: bool(actor.briefs))
    told = context_block(actor.briefs[0].context)
    assert hashed_id("ana", salt="pepper") in told
    assert '"ana"' not in told
