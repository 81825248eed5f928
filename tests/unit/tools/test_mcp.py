"""Tools of MCP servers: names, effects, results, faults, and servers that die, sleep or never come."""

import asyncio
import shutil
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from keryx.core.values.json_value import JsonValue
from keryx.errors import ToolFailed
from keryx.tools.mcp.mcp_tool import offered_name
from keryx.tools.mcp.servers import McpServers
from keryx.tools.mcp.settings import McpServerSettings
from keryx.tools.tool import Tool, Toolbox, ToolCall

PROGRAMS = Path(__file__).parents[2] / "flow" / "programs"
PATIENCE_SECONDS = 30


def by_hand(folder: Path, **more: Any) -> McpServerSettings:
    command = (sys.executable, "-S", str(PROGRAMS / "mcp_by_hand.py"), str(folder / "book"))
    return McpServerSettings(name="hand", command=command, **more)


@asynccontextmanager
async def serving(folder: Path, *servers: McpServerSettings, **how: Any) -> AsyncIterator[McpServers]:
    """The servers, and hardly a pause before one is started again."""
    made = McpServers(servers, folder=folder / "mcp", sleep=lambda _: asyncio.sleep(0.05), **how)
    try:
        async with asyncio.timeout(2 * PATIENCE_SECONDS):
            yield made
    finally:
        await made.aclose()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():  # noqa: ASYNC110 - what it looks at has no event
            await asyncio.sleep(0.01)


async def up(servers: McpServers) -> None:
    """Wait for the tools, also on a machine that is too busy for a turn to wait so long."""
    await servers.ready()
    await until(lambda: bool(servers.tools()))


def tool_of(servers: McpServers, name: str) -> Tool:
    tool = Toolbox(sources=[servers]).find(name)
    assert tool is not None
    return tool


def use(**arguments: JsonValue) -> ToolCall:
    return ToolCall(arguments=arguments, session_id="s", person_id=1, audience_id=None, key="k")


async def failure(servers: McpServers, name: str, **arguments: JsonValue) -> str:
    with pytest.raises(ToolFailed) as failed:
        await tool_of(servers, name).run(use(**arguments))
    return str(failed.value)


def starts(folder: Path) -> int:
    return (folder / "book").read_text().split().count("start")


async def test_tools_are_offered_and_called_and_their_results_converted(tmp_path: Path) -> None:
    server = by_hand(tmp_path, effects={"fill": "once", "sleep": "idempotent"}, toolset="office")
    async with serving(tmp_path, server) as servers:
        assert servers.tools() == []
        box = Toolbox(sources=[servers])
        await box.ready()
        await up(servers)
        offers = {offer.name: offer for offer in box.offers()}
        changed = offered_name("hand", "keep it")
        assert {
            name: offers[name].effect
            for name in ("hand__echo", changed, "hand__send", "hand__fill", "hand__sleep")
        } == {
            "hand__echo": "pure",
            changed: "ask",
            "hand__send": "ask",
            "hand__fill": "once",
            "hand__sleep": "idempotent",
        }
        assert offers["hand__echo"].description == "Repeat it."
        assert offers["hand__send"].description == "Send it"
        assert {(offer.toolset, offer.is_foreign) for offer in offers.values()} == {("office", True)}
        assert await tool_of(servers, "hand__echo").run(use(a=1)) == 'echo: {"a": 1}'
        assert await tool_of(servers, changed).run(use(a=[2])) == {"kept": {"a": [2]}}
        shown = await tool_of(servers, "hand__show").run(use())
        assert shown == "[image/png, 3 bytes, not kept]\na text\n[resource, not kept]\n[d: a:d]"
        filled = await tool_of(servers, "hand__fill").run(use())
        # Whole: what is too long to be shown at once is kept beside the conversation.
        assert filled == "x" * 300_000
        flooded = await tool_of(servers, "hand__flood").run(use())
        assert isinstance(flooded, str)
        assert flooded.endswith("[cut here: 5000001 characters in all, of which 5000000 are kept]")
        assert await failure(servers, "hand__fail") == "no paper"
        assert await failure(servers, "hand__refuse") == "never heard of it"
        question = tool_of(servers, "hand__send").question(use(to="Ana"))
        assert question.startswith(
            "May I use 'send' of the MCP server 'hand'? It is given: {\"to\": \"Ana\"}"
        )
        await tool_of(servers, "hand__grow").run(use())
        await until(lambda: box.find("hand__grown") is not None)
    assert starts(tmp_path) == 1


async def test_a_tool_that_does_not_answer_times_out(tmp_path: Path) -> None:
    async with serving(tmp_path, by_hand(tmp_path, timeout_seconds=1)) as servers:
        await up(servers)
        assert "did not answer within 1 s" in await failure(servers, "hand__sleep")


async def test_a_crashed_server_is_restarted_and_only_repeatable_calls_are_repeated(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, by_hand(tmp_path)) as servers:
        await up(servers)
        assert await tool_of(servers, "hand__crash").run(use()) == "crash: {}"
        assert "it is unknown whether the call was done" in await failure(servers, "hand__crash_once")
        assert "it is unknown whether the call was done" in await failure(servers, "hand__crash", times=9)
        assert await tool_of(servers, "hand__echo").run(use()) == "echo: {}"
    book = (tmp_path / "book").read_text().split()
    assert (book.count("crash"), book.count("crash_once")) == (4, 1)


async def test_stored_tools_are_offered_at_once_and_a_call_starts_the_server(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, by_hand(tmp_path)) as servers:
        await up(servers)
        count = len(servers.tools())
    async with serving(tmp_path, by_hand(tmp_path)) as servers:
        assert len(servers.tools()) == count
        assert starts(tmp_path) == 1
        assert await tool_of(servers, "hand__echo").run(use()) == "echo: {}"
    # Another server of the same name is another server, and a list that cannot be read is none.
    other = McpServerSettings(name="hand", url="http://127.0.0.1:9/mcp")
    assert McpServers([other], folder=tmp_path / "mcp").tools() == []
    (tmp_path / "mcp" / "hand.json").write_text("{")
    assert McpServers([by_hand(tmp_path)], folder=tmp_path / "mcp").tools() == []


async def test_a_server_that_never_starts_delays_one_turn_briefly(tmp_path: Path) -> None:
    program = tmp_path / "lost.py"
    shutil.copy(PROGRAMS / "mcp_by_hand.py", program)
    command = (sys.executable, "-S", str(program), str(tmp_path / "book"))
    lost = McpServerSettings(name="lost", command=command)
    async with serving(tmp_path, lost) as servers:
        await up(servers)
    program.unlink()
    never = McpServerSettings(name="never", command=(sys.executable, "-S", "-c", "input(); input()"))
    nowhere = McpServerSettings(name="nowhere", command=("/nowhere/it",))
    async with serving(tmp_path, lost, never, nowhere, start_seconds=0.2, first_seconds=0.2) as servers:
        await servers.ready()
        assert {tool.offer.toolset for tool in servers.tools()} == {"mcp-lost"}
        await servers.ready()
        assert "cannot be reached now" in await failure(servers, "lost__echo")


async def test_a_single_turn_waits_for_a_slow_server(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, by_hand(tmp_path, env={"PATIENCE": "1"}), first_seconds=0.05) as servers:
        await servers.ready()
        assert servers.tools() == []
    async with serving(tmp_path, by_hand(tmp_path, env={"PATIENCE": "1"}), first_seconds=None) as servers:
        await servers.ready()
        assert tool_of(servers, "hand__echo").offer.effect == "pure"
        assert servers.troubles() == []


async def test_a_failed_server_is_reported_and_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "broken.log").write_text("an old story\n")
    write = "import sys; sys.stderr.write('Traceback\\nKeyError: \\x1b[1mTOKEN\\n\\n'); sys.exit(1)"
    broken = McpServerSettings(name="broken", command=(sys.executable, "-S", "-c", write))
    dumb = McpServerSettings(name="dumb", command=(sys.executable, "-S", "-c", ""))
    asleep = McpServerSettings(name="asleep", command=(sys.executable, "-S", "-c", "input(); input()"))
    nowhere = McpServerSettings(name="nowhere", command=("/nowhere/it",))
    async with serving(
        tmp_path, broken, dumb, asleep, nowhere, start_seconds=2.0, first_seconds=None
    ) as servers:
        assert servers.troubles() == []
        await servers.ready()
        assert servers.troubles() == [
            "The MCP server 'broken' does not work: KeyError: [1mTOKEN",
            "The MCP server 'dumb' does not work: it ended, or did not answer as such a server does (MCPError).",
            "The MCP server 'asleep' does not work: it did not list its tools within 2 s.",
            "The MCP server 'nowhere' does not work: No such file or directory.",
        ]


async def test_a_server_that_works_again_is_no_longer_reported(tmp_path: Path) -> None:
    (tmp_path / "book").mkdir()  # it cannot note its start
    async with serving(tmp_path, by_hand(tmp_path)) as servers:
        await servers.ready()
        [trouble] = servers.troubles()
        assert "IsADirectoryError" in trouble
        (tmp_path / "book").rmdir()
        await until(lambda: bool(servers.tools()))
        await until(lambda: not servers.troubles())


async def test_tools_that_cannot_be_stored_are_still_offered(tmp_path: Path) -> None:
    (tmp_path / "mcp" / "hand.json").mkdir(parents=True)
    async with serving(tmp_path, by_hand(tmp_path)) as servers:
        await up(servers)
        assert await tool_of(servers, "hand__echo").run(use()) == "echo: {}"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


async def test_a_server_made_with_the_protocol_s_own_package_is_reached_by_pipe_and_by_http(
    tmp_path: Path,
) -> None:
    program = str(PROGRAMS / "mcp_by_package.py")
    port = free_port()
    pipe = McpServerSettings(name="pipe", command=(sys.executable, program, "stdio"))
    http = McpServerSettings(name="http", url=f"http://127.0.0.1:{port}/mcp", headers={"x-key": "k"})
    process = await asyncio.create_subprocess_exec(
        sys.executable, program, str(port), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with serving(tmp_path, pipe, http) as servers:
            await servers.ready()
            await until(lambda: len(servers.tools()) == 2)
            for name in ("pipe__add", "http__add"):
                assert await tool_of(servers, name).run(use(a=2, b=3)) == {"result": 5}
            process.terminate()
            await process.wait()
            assert "it is unknown whether" in await failure(servers, "http__add", a=2, b=3)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ("add", "s__add"),
        ("a-b_C9", "s__a-b_C9"),
        ("a b", "s__a_b_"),
        ("ü", "s____"),
        ("x" * 80, "s__" + "x" * 52),
    ],
)
def test_offered_names_suit_every_provider_and_are_unique(tool: str, name: str) -> None:
    offered = offered_name("s", tool)
    assert offered.startswith(name)
    assert len(offered) <= 64
    assert offered_name("s", tool + " ") != offered
