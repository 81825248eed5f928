"""The tools of an agent by person and platform; and the typing indicator."""

import asyncio

import pytest

from keryx.agents.agent import Answer, Brief, Stage
from keryx.clock import SECOND
from keryx.config import Settings
from keryx.core.deliveries.rules.route import Address
from keryx.core.people.rules.access import Grant
from keryx.core.people.rules.toolset import ToolsetSettings
from keryx.core.people.tables import access, people
from keryx.platforms.adapter import Capabilities
from keryx.store.database import Database
from keryx.testing.platform import FakeAdapter, FakePlatform
from keryx.tools.keryx.plugin import keryx_tools
from tests.flow.running import Actor, gateway_of, let_in, running, said, until
from tests.flow.turns.test_turn_ends import RecordingTool, calling

LISTS = {"list_sessions", "list_schedules", "list_processes", "list_platforms"}
STATE = LISTS | {"search_history", "read_session", "read_result"}
MEMORY = {"recall", "remember"}
GENERAL = {"delegate", "send_to_others", "fetch", "read_result"}
MEMBER = STATE | MEMORY | {"ask_user", "send_message", "schedule", "preview_schedule"}


async def tools_told(
    store: Database, platform: FakePlatform, *users: str, settings: Settings | None = None
) -> list[set[str]]:
    """Let people write one after the other, and return the tools that the agent gets."""
    agent = Actor()
    tools = [*keryx_tools(store), RecordingTool("fetch", "once")]
    async with running(store, platform, agent, tools=tools, settings=settings):
        for number, user in enumerate(users, 1):
            platform.say(f"hello {number}", chat=user, user=user)
            await until(lambda number=number: len(platform.shown) == number)  # type: ignore[misc]
    return [{offer.name for offer in brief.tools} for brief in agent.briefs]


async def test_the_agent_is_offered_the_tools_of_the_person_s_role(
    store: Database, platform: FakePlatform
) -> None:
    guest = await store.write(lambda tx: people.add_person(tx, name="gil", role="guest"))
    await store.write(
        lambda tx: tx.run(
            "people.add_identity", platform="fake", account="", user_id="gil", person_id=guest.id, name="gil"
        )
    )
    await store.write(lambda tx: people.mark_welcomed(tx, guest.id))
    told = await tools_told(store, platform, "ana", "ben", "gil")
    assert told == [MEMBER | GENERAL, MEMBER, set()]


async def test_settings_and_grants_decide_by_platform(store: Database, platform: FakePlatform) -> None:
    toolsets = ToolsetSettings(
        by_role={"owner": frozenset({"state"})},
        by_platform_and_role={("fake", "member"): frozenset({"general"})},
    )
    settings = Settings(toolsets=toolsets)
    assert await tools_told(store, platform, "ana", "ben", settings=settings) == [STATE, GENERAL]
    grant = Grant(role="member", kind="toolset", name="memory", platform="fake")
    await store.write(lambda tx: access.set_grant(tx, grant))
    platform.shown.clear()
    assert await tools_told(store, platform, "ben", settings=settings) == [GENERAL | MEMORY]


@pytest.mark.parametrize("user", ["ana", "ben"])
async def test_a_tool_that_was_not_offered_does_not_run(
    store: Database, platform: FakePlatform, user: str
) -> None:
    errand, asked = RecordingTool("fetch", "once"), RecordingTool("send", "ask")
    async with running(store, platform, calling("fetch", "send"), tools=[errand, asked]):
        platform.say("go", user=user)
        await until(lambda: len(platform.shown) == 1)
    [text] = platform.said_to("1")
    if user == "ana":
        assert text.startswith("May I run send?\n")
        assert len(errand.keys) == 1
    else:
        assert (
            text
            == "There is no tool 'fetch'. There are: none here. / There is no tool 'send'. There are: none here."
        )
        assert (errand.keys, asked.keys) == ([], [])


async def test_an_approved_call_does_not_run_if_its_tool_is_no_longer_offered(
    store: Database, platform: FakePlatform
) -> None:
    asked = RecordingTool("send", "ask")
    async with running(store, platform, calling("send"), tools=[asked]) as gateway:
        platform.say("go")
        await until(lambda: len(platform.shown) == 1 and not gateway.turns_running)
        deny = Grant(role="owner", kind="toolset", name="*", allow=False)
        await store.write(lambda tx: access.set_grant(tx, deny))
        platform.say("/approve")
        await until(lambda: len(platform.shown) == 3)
    assert "There is no tool 'send'. There are: none here." in platform.said_to("1")
    assert asked.keys == []


class NoTypingAdapter(FakeAdapter):
    """Fails to show the typing indicator."""

    async def show_typing(self, to: Address) -> None:
        await super().show_typing(to)
        raise ConnectionResetError


@pytest.mark.parametrize("fails", [False, True])
async def test_a_chat_shows_the_typing_indicator_while_its_turn_runs(
    store: Database, monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    monkeypatch.setattr("keryx.gateway.typing_indicator.TYPING_EVERY", SECOND // 10)
    monkeypatch.setattr("keryx.gateway.typing_indicator.LOOK_SECONDS", 0.05)
    platform = FakePlatform(capabilities=Capabilities(text_max=4_096, shows_typing=True))
    await let_in(store, platform, "ana")
    may_end = asyncio.Event()

    async def think(brief: Brief, stage: Stage) -> Answer:
        await may_end.wait()
        return said("done")

    adapter = NoTypingAdapter(platform) if fails else platform.adapter()
    async with gateway_of(store, [adapter], Actor(think)) as gateway:
        platform.say("hello", chat="7")
        await until(lambda: len(platform.typing) >= 3)
        may_end.set()
        await until(lambda: platform.said_to("7") == ["done"] and not gateway.turns_running)
    assert {address.chat_id for address in platform.typing} == {"7"}


async def test_the_typing_indicator_is_shown_about_every_four_seconds(store: Database) -> None:
    """A turn that lasts two polls is shown once."""
    platform = FakePlatform(capabilities=Capabilities(text_max=4_096, shows_typing=True))
    await let_in(store, platform, "ana")

    async def think(brief: Brief, stage: Stage) -> Answer:
        await until(lambda: bool(platform.typing))
        await asyncio.sleep(1.5)
        return said("done")

    async with running(store, platform, Actor(think)):
        platform.say("hello")
        await until(lambda: platform.said_to("1") == ["done"])
    assert len(platform.typing) == 1
