"""Hermes Agent, a real ACP program, as the agent of a gateway, with our scripted model as its provider.

It is installed by itself, once, under ``build/``: 230 MB, which the ordinary run does not wait for.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from keryx.agents.acp.agent import AcpAgent
from keryx.agents.acp.contract import ToolReports
from keryx.agents.acp.steps import acp_tools
from keryx.store.database import Database
from keryx.subprocesses.start_program import ProgramSettings
from keryx.testing.model_server import Asked, Call, ModelServer, Reply
from keryx.testing.platform import FakePlatform
from tests.flow.agents.test_acp_agent import calls_of, transcript
from tests.flow.running import running, until

ROOT = Path(__file__).parents[3]
VERSION = "0.19.0"
PATIENCE_SECONDS = 120
CONFIG = """
model:
  default: scripted
  provider: custom
  base_url: {url}
  api_key: k
"""


@pytest.fixture(scope="module")
def hermes() -> Path:
    """Return the program, installed if necessary; a failed installation fails the test."""
    folder = ROOT / "build" / f"hermes-agent-{VERSION}"
    program = folder / "bin" / "hermes-acp"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        wanted = f"hermes-agent[acp]=={VERSION}"
        subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "-q", wanted], check=True)
    return program


def play(asked: Asked) -> Reply:
    """Ask to delete a folder, and report it; requests that Hermes makes for itself get one word."""
    messages: Any = asked.body["messages"]
    if not asked.body.get("tools"):
        return Reply(text="A title")
    if messages[-1]["role"] == "tool":
        return Reply(text="It is gone.")
    if "Delete" in str(messages[-1]["content"]):
        return Reply(text="I delete it.", calls=[Call(name="terminal", arguments={"command": "rm -rf old"})])
    return Reply(text=f"I heard {sum(message['role'] == 'user' for message in messages)}.")


@pytest.mark.slow
@pytest.mark.parametrize("store_address", ["sqlite"], indirect=True)
async def test_hermes_answers_asks_and_acts_and_continues_after_a_restart(
    store: Database, platform: FakePlatform, hermes: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "work"
    (folder / "old").mkdir(parents=True)

    def agent_on(server: ModelServer) -> tuple[AcpAgent, ToolReports]:
        (tmp_path / "config.yaml").write_text(CONFIG.format(url=server.openai_url))
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "HERMES_HOME": str(tmp_path)}
        settings = ProgramSettings(command=(str(hermes),), folder=folder, environment=environment)
        reports = ToolReports()
        return AcpAgent(settings, errors=tmp_path / "agent.log", reports=reports), reports

    async with ModelServer(play) as server:
        agent, reports = agent_on(server)
        async with running(store, platform, agent, tools=acp_tools(reports)):
            platform.say("Hello")
            await until(lambda: platform.said_to("1") == ["I heard 1."], seconds=PATIENCE_SECONDS)
            platform.say("Delete the old folder.")
            await until(lambda: len(platform.said_to("1")) == 2, seconds=PATIENCE_SECONDS)
            assert "rm -rf old" in platform.said_to("1")[1]
            assert (folder / "old").exists()
            platform.say("/approve")
            await until(lambda: platform.said_to("1")[-1] == "It is gone.", seconds=PATIENCE_SECONDS)
            assert not (folder / "old").exists()
        agent, reports = agent_on(server)
        async with running(store, platform, agent, tools=acp_tools(reports), holder="node-2"):
            platform.say("Still there?")
            await until(lambda: platform.said_to("1")[-1] == "I heard 3.", seconds=PATIENCE_SECONDS)
    permission, deleted = calls_of(await transcript(store))
    assert (permission[0], permission[2]) == ("acp_permission", "allowed")
    assert (deleted[0], deleted[3]) == ("acp_execute", False)
