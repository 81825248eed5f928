"""Programs in the configuration: agents, and MCP servers with values from variables."""

from pathlib import Path

import pytest

from keryx.agents.acp.plugin import ACP
from keryx.agents.command.plugin import COMMAND, FORMAT
from keryx.config import Configuration
from keryx.config_load import load_config, set_value
from keryx.errors import InvalidValue
from keryx.tools.mcp.settings import McpServerSettings, mcp_servers

SERVERS = """
mcp:
  servers:
    files:
      command: [server, --root, /notes]
      env: {TOKEN: $FILES_TOKEN, MODE: "a=b"}
      effects:
        read: pure
        write: ask
      timeout_seconds: 5
    web:
      url: https://example.test/mcp
      headers: ["Authorization=Bearer ${WEB_TOKEN}"]
      toolset: office
"""


class Home:
    """A profile with a file and a .env."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "home" / "main"
        self.folder.mkdir(parents=True)
        self.environ = {"KERYX_HOME": str(folder / "home")}
        self.cwd = folder

    def write(self, text: str, *, secrets: str = "") -> None:
        (self.folder / "config.yaml").write_text(text)
        (self.folder / ".env").write_text(secrets)
        (self.folder / ".env").chmod(0o600)

    def problem(self, **variables: str) -> str:
        with pytest.raises(InvalidValue) as wrong:
            load_config(self.environ | variables, self.cwd)
        return str(wrong.value)


def command(found: Configuration) -> tuple[str, ...]:
    return found.values.of(COMMAND)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_the_model_agent_answers_by_default(home: Home) -> None:
    found = load_config(home.environ, home.cwd)
    assert found.plugins.agent == "model"
    assert (found.values.of(ACP), found.values.of(COMMAND)) == ((), ())
    assert mcp_servers(found) == ()


def test_a_relative_path_of_a_program_starts_at_the_folder_of_its_file(home: Home) -> None:
    home.write("agent: {command: [./answer.sh, ./a]}\nmcp: {servers: {a: {command: bin/serve}}}")
    found = load_config(home.environ, home.cwd)
    assert command(found) == (str(home.folder / "answer.sh"), "./a")
    assert mcp_servers(found)[0].command == (str(home.folder / "bin" / "serve"),)
    found = load_config(home.environ | {"KERYX_AGENT_COMMAND": "./it"}, home.cwd)
    assert command(found) == (str(home.cwd / "it"),)
    found = load_config(home.environ | {"KERYX_AGENT_COMMAND": "cat a/b"}, home.cwd)
    assert command(found) == ("cat", "a/b")


def test_a_command_line_is_a_text_or_a_list(home: Home) -> None:
    home.write("agent: {acp: 'opencode acp --cwd \"/a b\"'}")
    found = load_config(home.environ, home.cwd)
    assert (found.plugins.agent, found.values.of(ACP)) == ("acp", ("opencode", "acp", "--cwd", "/a b"))
    home.write("agent: {command: [answer, 'a b'], format: jsonl}")
    found = load_config(home.environ, home.cwd)
    assert (found.plugins.agent, command(found)) == ("command", ("answer", "a b"))
    assert (found.values.of(FORMAT), found.values.of(ACP)) == ("jsonl", ())
    found = set_value("agent.command", "none", environ=home.environ, cwd=home.cwd)
    assert (found.plugins.agent, command(found)) == ("model", ())


def test_a_program_gets_all_variables_except_keryx_s_own(home: Home) -> None:
    home.write("", secrets="SOME_KEY=s\nKERYX_PLATFORMS_WEBHOOK_SECRET=whsec_x\n")
    found = load_config(home.environ | {"PATH": "/bin", "KERYX_AGENT_ACP": "it"}, home.cwd)
    assert found.foreign_variables == {"PATH": "/bin", "SOME_KEY": "s"}
    assert "SOME_KEY" not in repr(found)


def test_servers_are_read_with_values_from_variables(home: Home) -> None:
    home.write(SERVERS, secrets="FILES_TOKEN=secret\n")
    found = load_config(home.environ | {"WEB_TOKEN": "t"}, home.cwd)
    files, web = mcp_servers(found)
    assert files == McpServerSettings(
        name="files",
        command=("server", "--root", "/notes"),
        env={"TOKEN": "secret", "MODE": "a=b"},
        effects={"read": "pure", "write": "ask"},
        timeout_seconds=5,
    )
    assert web == McpServerSettings(
        name="web",
        url="https://example.test/mcp",
        headers={"Authorization": "Bearer t"},
        toolset="office",
        timeout_seconds=60,
    )
    shown = {row.name: row.value for row in found.rows}
    assert shown["mcp.servers.files.env"] == "TOKEN, MODE"
    assert "secret" not in repr(files)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("agent: {acp: a, command: b}", "agent.acp is also set; keep one of them"),
        ("agent: {acp: 'a \"b'}", "a quote is not closed"),
        ("agent: {acp: ['', b]}", "the program is missing"),
        ("agent: {format: xml}", "use one of text, jsonl"),
        (
            "mcp: {servers: {a: {toolset: x}}}",
            "mcp.servers.a: give either a command, which is started, or a url",
        ),
        ("mcp: {servers: {a: {command: x, url: 'http://y/'}}}", "give either a command"),
        ("mcp: {servers: {A B: {command: x}}}", "the server's name 'A B'"),
        ("mcp: {servers: {a: {command: x, env: {B: $NOWHERE}}}}", "the variable NOWHERE is not set"),
        ("mcp: {servers: {a: {command: x, env: [B]}}}", "entry 1 has no name"),
        ("mcp: {servers: {a: {command: x, env: {B: [c]}}}}", "write a name before each colon"),
        ('mcp: {servers: {a: {command: x, env: {B: "c\\n"}}}}', "entry 1 contains control characters"),
        ("mcp: {servers: {a: {command: x, effects: {b: never}}}}", "'never' is not known; use one of"),
        ("mcp: {servers: {a: {command: x, timeout_seconds: 0}}}", "write a whole number from 1 to 3600"),
    ],
)
def test_a_problem_is_reported_with_its_line(home: Home, text: str, problem: str) -> None:
    home.write(text)
    told = home.problem()
    assert problem in told
    assert "config.yaml:1: " in told


def test_none_is_an_empty_list(home: Home) -> None:
    home.write("mcp: {servers: {a: {command: x, env: none, headers: 'A=b'}}}")
    (server,) = mcp_servers(load_config(home.environ, home.cwd))
    assert (server.env, server.headers) == ({}, {"A": "b"})


def test_a_project_cannot_start_programs(home: Home, tmp_path: Path) -> None:
    (tmp_path / "keryx.yaml").write_text("agent: {command: rm}\nmcp: {servers: {a: {command: rm}}}\n")
    assert home.problem().count("a project cannot set this") == 2
