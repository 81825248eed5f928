"""No text crosses: every conversation has a canary, and no output contains the canary of another conversation."""

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from keryx.agents.agent import Answer, Brief, Stage
from keryx.core.conversations.rules.message import NewMessage, TextPart, ToolCallPart
from keryx.core.values.json_value import JsonValue
from keryx.platforms.adapter import Capabilities
from keryx.store.database import Database
from keryx.testing.platform import FakePlatform
from keryx.tools.keryx.plugin import keryx_tools
from tests.flow.running import Actor, gateway_of, let_in, said, until

PLATFORMS = ("telegram", "discord", "slack", "whatsapp", "signal", "matrix")
WIDE = Capabilities(text_max=1_000_000)
GROUP_SIZE = 5
CANARY = re.compile(r"canary[a-z0-9]+?end")


@dataclass(frozen=True)
class Chat:
    platform: FakePlatform
    name: str
    users: tuple[str, ...]

    @property
    def canary(self) -> str:
        return f"canary{self.platform.name}{self.name}end"

    @property
    def is_group(self) -> bool:
        return len(self.users) > 1


def make_chats(platforms: list[FakePlatform], *, people: int) -> Iterator[Chat]:
    """Return the chats: one for each person, and groups on each platform, of which two share members."""
    each = people // len(platforms)
    for platform in platforms:
        users = [f"user{number}" for number in range(each)]
        for user in users:
            yield Chat(platform, user, (user,))
        for number in range(0, each - GROUP_SIZE + 1, GROUP_SIZE - 1):
            yield Chat(platform, f"group{number}", tuple(users[number : number + GROUP_SIZE]))


async def look_around(brief: Brief, stage: Stage) -> Answer:
    """Answer with every canary in the brief and in the results of the tools."""
    looks: dict[str, JsonValue] = {"search_history": {"query": "canary*"}, "list_sessions": {}}
    # All conversations have this title: a single visible one is read, several are listed.
    looks["read_session"] = {"session": "canary"}
    calls = tuple(
        ToolCallPart(call_id=f"{tool}-{brief.turn_id}", name=tool, arguments=arguments)
        for tool, arguments in looks.items()
    )
    told = await stage.act(NewMessage(role="assistant", parts=(TextPart(text="I look."), *calls)))
    return said(" ".join(sorted(set(CANARY.findall(f"{brief.context} {brief.messages} {told.results}")))))


async def test_no_text_crosses_between_people_platforms_and_groups(
    store: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    platforms = [FakePlatform(name=name, capabilities=WIDE) for name in PLATFORMS]
    chats = list(make_chats(platforms, people=200 if store.dialect == "sqlite" else 60))
    for platform in platforms:
        members = {user for chat in chats if chat.platform is platform for user in chat.users}
        await let_in(store, platform, "nobody", *sorted(members))
    async with gateway_of(
        store,
        [platform.adapter() for platform in platforms],
        Actor(look_around),
        tools=keryx_tools(store),
    ):
        for chat in chats:
            for user in chat.users:
                chat.platform.say(
                    f"{chat.canary} of {user}",
                    chat=chat.name,
                    user=user,
                    chat_type="group" if chat.is_group else "dm",
                )
        asked = sum(len(chat.users) for chat in chats)
        await until(lambda: sum(len(platform.acknowledged) for platform in platforms) == asked, seconds=60)
        await until(lambda: all(is_answered(chat, times=1) for chat in chats), seconds=60)
        shared = [chat for chat in chats if heard_elsewhere(chat, chats)]
        for chat in shared:
            chat.platform.say("and now?", chat=chat.name, user=chat.name)
        await until(lambda: all(is_answered(chat, times=2) for chat in shared), seconds=60)
    crossed = [
        (chat.name, chat.platform.name, found)
        for chat in chats
        for text in chat.platform.said_to(chat.name)
        for found in CANARY.findall(text)
        if found not in {chat.canary, *heard_elsewhere(chat, chats)}
    ]
    assert crossed == []
    assert not CANARY.search(caplog.text), "the log knows what was said"
    # In private, a person finds messages of their groups, which shows that the search ran.
    assert all(heard_elsewhere(chat, chats) & set(CANARY.findall(seen_in(chat))) for chat in shared)


def seen_in(chat: Chat) -> str:
    return "\n".join(chat.platform.said_to(chat.name))


def is_answered(chat: Chat, *, times: int) -> bool:
    return len(chat.platform.said_to(chat.name)) >= times


def heard_elsewhere(chat: Chat, chats: list[Chat]) -> set[str]:
    """Return the groups whose messages a person may also see in private: those in which they write."""
    if chat.is_group:
        return set()
    return {
        other.canary
        for other in chats
        if other.is_group and other.platform is chat.platform and chat.users[0] in other.users
    }
