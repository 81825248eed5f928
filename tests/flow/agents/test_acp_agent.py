"""An ACP program as the agent of a real gateway: its text and calls, permissions, stops and crashes."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from keryx.agents.acp.agent import AcpAgent
from keryx.agents.acp.contract import ToolReports
from keryx.agents.acp.steps import acp_tools
from keryx.core.conversations.rules.message import Message, ThinkingPart, ToolResultPart
from keryx.core.conversations.views.session_list import list_sessions
from keryx.core.conversations.views.transcript import list_transcript
from keryx.core.people.tables import people
from keryx.core.upkeep.views.invariants import check_invariants
from keryx.store.database import Database, ReadTx
from keryx.subprocesses.start_program import ProgramSettings
from keryx.testing.platform import FakePlatform
from keryx.tools.tool import Tool
from tests.flow.running import running, until

PROGRAMS = Path(__file__).parents[1] / "programs"
SOON_SECONDS = 3
"""A generous limit: an idle machine needs a tenth of it."""


class Desk:
    """An agent on ``acp_by_hand``, its tools, and the log that the program writes."""

    def __init__(self, folder: Path, *options: str, program: str = "acp_by_hand.py") -> None:
        self._folder = folder
        self._command = (sys.executable, str(PROGRAMS / program), str(folder / "book"), *options)
        self.agent, self.tools = self.another()

    def another(self) -> tuple[AcpAgent, list[Tool]]:
        """Return the agent after a restart of Keryx."""
        reports = ToolReports()
        settings = ProgramSettings(command=self._command, folder=self._folder / "work")
        agent = AcpAgent(settings, errors=self._folder / "agent.log", reports=reports)
        return agent, list(acp_tools(reports))

    @property
    def book(self) -> list[dict[str, Any]]:
        path = self._folder / "book"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    def noted(self, what: str) -> list[str]:
        """Return the entries of one kind in the program's log."""
        return [str(entry[what]) for entry in self.book if what in entry]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def transcript(store: Database) -> list[Message]:
    """Return all messages of the newest conversation."""

    def look(tx: ReadTx) -> list[Message]:
        owner = people.find_owner(tx)
        assert owner is not None
        session, *_ = list_sessions(tx, person_id=owner.id).rows
        return list_transcript(tx, session.id, person_id=owner.id, last=None)

    assert await store.read(check_invariants) == []
    return await store.read(look)


def calls_of(messages: list[Message]) -> list[tuple[str, object, object, bool]]:
    """Return name, arguments, result and error of each call."""
    results = {
        part.call_id: part
        for message in messages
        for part in message.parts
        if isinstance(part, ToolResultPart)
    }
    return [
        (call.name, call.arguments, results[call.call_id].output, results[call.call_id].is_error)
        for message in messages
        for call in message.tool_calls
    ]


async def test_the_program_s_text_thinking_and_tools_are_in_the_transcript(
    store: Database, platform: FakePlatform, desk: Desk
) -> None:
    async with running(store, platform, desk.agent, tools=desk.tools):
        platform.say("think")
        await until(lambda: platform.said_to("1") == ["heard: think"])
        platform.say("use")
        await until(lambda: len(platform.said_to("1")) == 2)
    assert platform.said_to("1")[1] == "It has three."
    messages = await transcript(store)
    thinking = [part.text for part in messages[1].parts if isinstance(part, ThinkingPart) and part.text]
    assert thinking == ["hm"]
    assert (messages[1].input_tokens, messages[1].output_tokens) == (3, 2)
    assert [(message.role, message.text) for message in messages[2:] if message.text] == [
        ("user", "use"),
        ("assistant", "I look."),
        ("assistant", "It has three."),
    ]
    read, begun = calls_of(messages)
    assert read == ("acp_read", {"title": "read it", "input": {"path": "x"}}, {"size": 3}, False)
    assert begun == ("acp_execute", {"title": "begin it"}, "The agent reported no result.", True)
    first, second = desk.noted("prompt")
    assert first.startswith("# This conversation")
    assert second == "use"
    assert len(desk.noted("new")) == 1


@pytest.mark.parametrize("word", ["/approve", "/deny"])
async def test_a_permission_is_an_approval_and_the_waiting_program_continues(
    store: Database, platform: FakePlatform, desk: Desk, word: str
) -> None:
    answer = "It is gone." if word == "/approve" else "It stays."
    async with running(store, platform, desk.agent, tools=desk.tools) as gateway:
        platform.say("may you")
        await until(lambda: any("delete the hotel" in said for said in platform.said_to("1")))
        await until(lambda: gateway.turns_running == 0)
        platform.say(word)
        await until(lambda: platform.said_to("1")[-1] == answer)
    assert len(desk.noted("prompt")) == 1
    assert desk.noted("chosen") == ["yes" if word == "/approve" else "no"]
    asked, done = calls_of(await transcript(store))
    assert asked[:2] == (
        "acp_permission",
        {"kind": "delete", "title": "delete the hotel", "input": {"name": "Roma"}},
    )
    assert done[0] == "acp_delete"
    assert (done[2], done[3]) == (("deleted", False) if word == "/approve" else ("not allowed", True))


@pytest.mark.parametrize("options", [("load",), ()])
async def test_a_permission_given_after_a_restart_is_valid(
    store: Database, platform: FakePlatform, tmp_path: Path, options: tuple[str, ...]
) -> None:
    desk = Desk(tmp_path, *options)
    async with running(store, platform, desk.agent, tools=desk.tools):
        platform.say("may you")
        await until(lambda: any("delete the hotel" in said for said in platform.said_to("1")))
    agent, tools = desk.another()
    async with running(store, platform, agent, tools=tools, holder="node-2"):
        platform.say("/approve")
        await until(lambda: platform.said_to("1")[-1] == "It is gone.")
    (asked, *_), (opened, *_) = desk.noted("prompt"), desk.noted("new")
    assert asked.endswith("may you")
    assert desk.noted("load") == ([opened] if options else [])
    assert len(desk.noted("new")) == (1 if options else 2)
    assert "You may. Go on with it now." in desk.noted("prompt")[1]
    # The second request is the same, so no person is asked.
    assert [call[0] for call in calls_of(await transcript(store))] == ["acp_permission", "acp_delete"]


async def test_a_new_message_instead_of_an_answer_ends_the_wait(
    store: Database, platform: FakePlatform, desk: Desk
) -> None:
    async with running(store, platform, desk.agent, tools=desk.tools) as gateway:
        platform.say("may you")
        await until(lambda: any("delete the hotel" in said for said in platform.said_to("1")))
        await until(lambda: gateway.turns_running == 0)
        platform.say("/stop")
        platform.say("never mind")
        await until(lambda: platform.said_to("1")[-1] == "heard: never mind")
    assert "cancelled" in desk.noted("chosen")


async def test_without_the_toolset_no_person_is_asked_and_nothing_is_allowed(
    store: Database, platform: FakePlatform, desk: Desk
) -> None:
    async with running(store, platform, desk.agent, tools=desk.tools):
        platform.say("may you", user="ben", chat="2")
        await until(lambda: platform.said_to("2") == ["It stays."])
    assert desk.noted("chosen") == ["no"]


async def test_a_stop_reaches_the_program_and_keeps_the_text_so_far(
    store: Database, platform: FakePlatform, desk: Desk
) -> None:
    async with running(store, platform, desk.agent, tools=desk.tools):
        platform.say("hang")
        await until(lambda: bool(desk.noted("hangs")))
        began = asyncio.get_running_loop().time()
        platform.say("/stop")
        await until(lambda: bool(desk.noted("cancelled")))
        assert asyncio.get_running_loop().time() - began < SOON_SECONDS
        platform.say("again")
        await until(lambda: "heard: again" in platform.said_to("1"))
    messages = await transcript(store)
    assert (messages[1].text, messages[1].finish_reason) == ("one two", "interrupted")


async def test_a_program_that_dies_is_restarted_with_the_conversation(
    store: Database, platform: FakePlatform, desk: Desk, tmp_path: Path
) -> None:
    async with running(store, platform, desk.agent, tools=desk.tools):
        platform.say("The hotel is called Roma.")
        await until(lambda: len(platform.said_to("1")) == 1)
        platform.say("die")
        await until(lambda: any("ended in the middle" in said for said in platform.said_to("1")))
        platform.say("What is it called?")
        await until(lambda: platform.said_to("1")[-1] == "heard: What is it called?")
    # The turn had three attempts, and each restarted program got the whole conversation.
    assert len(desk.noted("prompt")) == 5
    assert len(desk.noted("new")) == 4
    last = desk.noted("prompt")[-1]
    assert "user: The hotel is called Roma." in last
    assert "assistant: heard: The hotel is called Roma." in last
    complaints = tmp_path / "agent.log"
    assert complaints.stat().st_mode & 0o077 == 0
    assert "nobody reads of the hotel here" in complaints.read_text()


async def test_after_an_undo_the_program_gets_only_the_remaining_messages(
    store: Database, platform: FakePlatform, desk: Desk
) -> None:
    async with running(store, platform, desk.agent, tools=desk.tools):
        for number, text in enumerate(("one", "two")):
            platform.say(text)
            await until(lambda: len(platform.said_to("1")) == number + 1)  # noqa: B023 - awaited at once
        platform.say("/undo")
        await until(lambda: len(platform.said_to("1")) == 3)
        platform.say("three")
        await until(lambda: platform.said_to("1")[-1] == "heard: three")
    last = desk.noted("prompt")[-1]
    assert "user: one" in last
    assert "two" not in last
    assert len(desk.noted("new")) == 2


@pytest.mark.parametrize("store_address", ["sqlite"], indirect=True)
async def test_a_program_made_with_the_protocol_s_own_package_answers(
    store: Database, platform: FakePlatform, tmp_path: Path
) -> None:
    desk = Desk(tmp_path, program="acp_by_package.py")
    async with running(store, platform, desk.agent, tools=desk.tools):
        platform.say("Hello there")
        await until(lambda: any("look" in said for said in platform.said_to("1")))
        platform.say("/approve")
        await until(lambda: platform.said_to("1")[-1] == "Hello there")
    _, looked = calls_of(await transcript(store))
    assert looked == ("acp_search", {"title": "look", "input": {"at": 1}}, "selected\nchanged a", False)
