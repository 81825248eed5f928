"""Programs from the configuration to the answer: agents, and MCP servers that must not delay the start."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from keryx.agents.acp.agent import AcpAgent
from keryx.agents.command.agent import CommandAgent
from keryx.app import open_system
from keryx.config_load import load_config
from tests.architecture.source import ROOT

PATIENCE_SECONDS = 60
NEVER = 'mcp: {servers: {never: {command: [sleep, "600"]}, nowhere: {url: "http://127.0.0.1:9/mcp"}}}'


def environ_of(home: Path, text: str) -> dict[str, str]:
    (home / "main").mkdir()
    (home / "main" / "config.yaml").write_text(text)
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src"), "KERYX_HOME": str(home)}


async def start(environ: dict[str, str], *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "keryx", *arguments),
        env=environ,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def test_a_command_answers_in_the_terminal(tmp_path: Path) -> None:
    environ = environ_of(tmp_path, "agent: {command: tr a-z A-Z}")
    process = await start(environ, "--print", "hello there")
    out, err = await asyncio.wait_for(process.communicate(), PATIENCE_SECONDS)
    assert (out.decode(), err.decode(), process.returncode) == ("HELLO THERE\n", "", 0)


async def test_a_command_agent_runs_in_the_start_folder_and_overrides_a_model(
    tmp_path: Path,
) -> None:
    environ = environ_of(tmp_path, "agent: {command: [./answer.sh]}") | {"KERYX_MODEL": "openai:gpt-5"}
    script = tmp_path / "main" / "answer.sh"
    script.write_text("#!/bin/sh\npwd\n")
    script.chmod(0o700)
    process = await start(environ, "--print", "where are you?")
    out, err = await asyncio.wait_for(process.communicate(), PATIENCE_SECONDS)
    assert out.decode() == f"{Path.cwd()}\n"
    assert err.decode() == "keryx: agent.command answers; the model (openai:gpt-5) is not asked.\n"


async def test_print_reports_tools_that_are_not_available(tmp_path: Path) -> None:
    broken = {"command": [sys.executable, "-S", "-c", "raise SystemExit('there is no key')"]}
    environ = environ_of(tmp_path, json.dumps({"mcp": {"servers": {"broken": broken}}}))
    process = await start(environ, "--print", "Which platforms are there?")
    out, err = await asyncio.wait_for(process.communicate(), PATIENCE_SECONDS)
    trouble = "The MCP server 'broken' does not work: there is no key"
    assert trouble in out.decode()
    assert err.decode() == f"keryx: {trouble}\n"


async def test_unreachable_servers_do_not_delay_a_gateway(tmp_path: Path) -> None:
    process = await start(environ_of(tmp_path, NEVER), "serve")
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE_SECONDS):
        while b"keryx: ready" not in await process.stderr.readline():
            assert process.returncode is None
    process.send_signal(signal.SIGTERM)
    await asyncio.wait_for(process.communicate(), PATIENCE_SECONDS)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("text", "kind", "tool"),
    [
        ("agent: {acp: hermes-acp}", AcpAgent, "acp_permission"),
        ("agent: {command: cat}", CommandAgent, "search_history"),
    ],
)
async def test_the_configuration_selects_the_agent(tmp_path: Path, text: str, kind: type, tool: str) -> None:
    async with open_system(load_config(environ_of(tmp_path, text), tmp_path)) as system:
        assert isinstance(system.agent, kind)
        assert system.toolbox.find(tool) is not None
        assert system.agent_name in ("hermes-acp (ACP)", "cat")
        await system.warm_up()
        await system.agent.close()
