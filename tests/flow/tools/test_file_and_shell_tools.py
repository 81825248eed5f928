"""A model uses files and commands through the real gateway: approvals, stops and long results."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from keryx.backends.local.registry import Registry
from keryx.clock import SystemClock
from keryx.config import Settings
from keryx.core.conversations.rules.message import ToolResultPart
from keryx.core.people.rules.toolset import ToolsetSettings
from keryx.errors import ToolFailed
from keryx.ids import Ids
from keryx.store.database import Database
from keryx.testing.model_server import Asked, Call, ModelServer, Reply
from keryx.testing.platform import FakePlatform
from keryx.tools.files.plugin import file_tools
from keryx.tools.keryx.read_result import ReadResult
from keryx.tools.shell.terminal import Terminal
from keryx.tools.tool import Tool
from keryx.tools.workspace import Workspaces
from tests.flow.agents.test_model_turns import agent_on, transcript
from tests.flow.running import running, until
from tests.flow.turns.test_turn_ends import RecordingTool, calling

EVERYTHING = Settings(
    toolsets=ToolsetSettings(
        by_platform_and_role={("fake", "owner"): frozenset({"all", "files", "terminal"})}
    )
)
SOON_SECONDS = 10.0
"""A generous limit for the promised second."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = (tmp_path / "work").resolve()
    root.mkdir()
    (root / "shopping.txt").write_text("tea\nmilk\n")
    return root


def tools_in(root: Path, store: Database) -> Sequence[Tool]:
    workspaces = Workspaces(default=root)
    environment = {"PATH": os.environ["PATH"]}
    background = Registry(store, root.parent / "processes", clock=SystemClock(), ids=Ids())
    terminal = Terminal(workspaces, environment=environment, profile="main", background=background)
    return [*file_tools(workspaces), terminal, ReadResult(store)]


async def results(store: Database) -> list[tuple[str, str, bool]]:
    """Return the results in the transcript: tool, text, and whether it is an error."""
    return [
        (part.name, str(part.output), part.is_error)
        for message in await transcript(store)
        for part in message.parts
        if isinstance(part, ToolResultPart)
    ]


async def test_a_file_is_read_at_once_and_a_command_runs_after_approval(
    store: Database, platform: FakePlatform, root: Path
) -> None:
    script = [
        Reply(calls=[Call(name="read_file", arguments={"path": "shopping.txt"})]),
        Reply(
            text="I count.",
            calls=[Call(name="terminal", arguments={"command": "wc -l < shopping.txt"}, call_id="c2")],
        ),
        Reply(text="Two things."),
    ]
    question = f"May I run this command in {root}?\n\nwc -l < shopping.txt"
    async with (
        ModelServer(script) as server,
        running(
            store, platform, agent_on(server), tools=tools_in(root, store), settings=EVERYTHING
        ) as gateway,
    ):
        platform.say("How many things are on the list?")
        await until(lambda: question in "".join(platform.said_to("1")) and not gateway.turns_running)
        assert [name for name, *_ in await results(store)] == ["read_file"], (
            "nothing runs before it is allowed"
        )
        platform.say("/approve")
        await until(lambda: "Two things." in platform.said_to("1"))
    assert await results(store) == [
        ("read_file", "shopping.txt, lines 1 to 2 of 2.\ntea\nmilk", False),
        ("terminal", "Exit code 0.\n2\n", False),
    ]


async def test_a_messaging_platform_gets_files_and_terminal_only_if_named(
    store: Database, platform: FakePlatform, root: Path
) -> None:
    async with (
        ModelServer([Reply(text="Hello.")]) as server,
        running(
            store, platform, agent_on(server), tools=[*tools_in(root, store), RecordingTool("look", "pure")]
        ),
    ):
        platform.say("Hello.")
        await until(lambda: platform.said_to("1") == ["Hello."])
    assert tools_of(server.requests[0]) == {"look", "read_result"}


async def test_without_other_tools_read_result_is_not_offered(
    store: Database, platform: FakePlatform, root: Path
) -> None:
    async with (
        ModelServer([Reply(text="Hello.")]) as server,
        running(store, platform, agent_on(server), tools=tools_in(root, store)),
    ):
        platform.say("Hello.", user="ben")
        await until(lambda: platform.said_to("1") == ["Hello."])
    assert tools_of(server.requests[0]) == set()


def tools_of(asked: Asked) -> set[str]:
    return set(re.findall(r"'name': '(\w+)'", str(asked.body.get("tools", []))))


async def test_a_stop_ends_the_processes_of_a_command(
    store: Database, platform: FakePlatform, root: Path
) -> None:
    command = "sleep 600 & echo $$ $! > pids; wait"
    script = [Reply(calls=[Call(name="terminal", arguments={"command": command, "timeout_seconds": 600})])]
    async with (
        ModelServer(script) as server,
        running(
            store, platform, agent_on(server), tools=tools_in(root, store), settings=EVERYTHING
        ) as gateway,
    ):
        platform.say("Sleep.")
        await until(lambda: len(platform.shown) == 1 and not gateway.turns_running)
        platform.say("/approve")
        await until(lambda: len(pids(root)) == 2)
        assert all(map(runs, pids(root)))
        platform.say("/stop")
        await until(lambda: not any(map(runs, pids(root))), seconds=SOON_SECONDS)
        await until(lambda: not gateway.turns_running)


def pids(root: Path) -> list[int]:
    path = root / "pids"
    return [int(pid) for pid in path.read_text().split()] if path.exists() else []


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def test_an_invalid_call_is_answered_without_asking_a_person(
    store: Database, platform: FakePlatform, root: Path
) -> None:
    script = [
        Reply(calls=[Call(name="terminal", arguments={"command": "make", "quiet": True})]),
        Reply(text="Not quietly, then."),
    ]
    async with (
        ModelServer(script) as server,
        running(store, platform, agent_on(server), tools=tools_in(root, store), settings=EVERYTHING),
    ):
        platform.say("Build it.")
        await until(lambda: platform.said_to("1") == ["Not quietly, then."])
    ((name, told, is_error),) = await results(store)
    assert (name, is_error) == ("terminal", True)
    assert told.startswith("'quiet' is for what runs in the background")


async def test_a_long_result_shows_its_beginning_and_end_and_can_be_read_in_full(
    store: Database, platform: FakePlatform, root: Path
) -> None:
    """The shown part says how to read the rest, and the transcript contains only the shown part."""

    def play(asked: Asked) -> Reply:
        told = [str(message["content"]) for message in asked.messages if message["role"] == "tool"]
        if not told:
            return Reply(calls=[Call(name="terminal", arguments={"command": "seq 1 20000"})])
        if len(told) == 1:
            (name,) = re.findall(r'read_result with result "(\w+)"', told[0])
            arguments = {"result": name, "offset": 60_000, "limit": 11}
            return Reply(calls=[Call(name="read_result", arguments=arguments, call_id="call_2")])
        return Reply(text=f"There it says {told[1].splitlines()[1:]}.")

    async with (
        ModelServer(play) as server,
        running(
            store, platform, agent_on(server), tools=tools_in(root, store), settings=EVERYTHING
        ) as gateway,
    ):
        platform.say("Count.")
        await until(lambda: len(platform.shown) == 1 and not gateway.turns_running)
        platform.say("/approve")
        await until(lambda: any(text.startswith("There it says") for text in platform.said_to("1")))
    whole = "Exit code 0.\n" + "".join(f"{number}\n" for number in range(1, 20_001))
    assert f"There it says {whole[60_000:60_011].splitlines()}." in platform.said_to("1")
    (_, shown, _), _ = await results(store)
    assert len(shown) < 16_000
    assert shown.startswith("Exit code 0.\n1\n2\n")
    assert shown.endswith("\n19999\n20000\n")


async def test_a_long_failure_is_cut_like_a_result(store: Database, platform: FakePlatform) -> None:
    errand = RecordingTool("fetch", "pure", fails_with=ToolFailed("no " * 10_000))
    async with running(store, platform, calling("fetch"), tools=[errand]):
        platform.say("go")
        await until(lambda: len(platform.shown) >= 1)
    ((_, shown, is_error),) = await results(store)
    assert is_error
    assert "characters are left out here" in shown
