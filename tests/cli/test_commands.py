"""The commands of a new user: no file, no key, an empty home."""

import asyncio
import gc
import json
import os
import signal
import socket
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from keryx.agents.model.guide import SETUP
from keryx.app import System, finish_start, make_adapters, open_system, serve
from keryx.cli.commands import app
from keryx.cli.running import format_account
from keryx.config_load import load_config
from keryx.errors import InvalidValue
from keryx.gateway.gateway import Account, Gateway
from keryx.testing.platform import FakePlatform
from tests.architecture.source import ROOT

SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"KERYX_HOME": str(tmp_path / "home")}


def invoke(home: dict[str, str], *arguments: str, said: str | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), env=home, input=said)


def test_print_writes_only_the_answer(home: dict[str, str]) -> None:
    result = invoke(home, "--print", "hello")
    assert (result.exit_code, result.stdout.startswith(SETUP), result.stderr) == (0, True, "")


def test_a_question_is_read_from_a_pipe(home: dict[str, str]) -> None:
    invoke(home, said="the hotel is called Roma")
    found = invoke(home, "--print", "-", said="search for hotel")
    assert "the hotel is called Roma" in found.stdout
    again = invoke(home, "--print", "--resume", "search for hotel", said="search for hotel")
    assert "the hotel is called Roma" in again.stdout
    assert "-5 degrees" in invoke(home, "--print=/title -5 degrees").stdout


def test_a_wrong_command_line_exits_with_2(home: dict[str, str]) -> None:
    assert invoke(home, "--prin", "hello").exit_code == 2


def test_print_resumes_a_conversation_by_name(home: dict[str, str]) -> None:
    invoke(home, "--print", "the hotel is called Roma")
    result = invoke(home, "--print", "which sessions are there?", "--resume", "the hotel")
    assert result.exit_code == 0
    assert "the hotel is called Roma (" in result.stdout
    unknown = invoke(home, "--print", "hello", "--resume", "no such name")
    assert (unknown.exit_code, unknown.stdout) == (1, "")
    assert "no conversation called" in unknown.stderr


def test_a_missing_question_is_an_error_with_a_hint(home: dict[str, str]) -> None:
    result = invoke(home, said="  \n")
    assert result.exit_code == 1
    assert "there is no question" in result.stderr


def test_a_wrong_configuration_is_reported_before_the_start(home: dict[str, str]) -> None:
    result = invoke({**home, "KERYX_RESET_MODE": "sometimes"}, "--print", "hello")
    assert result.exit_code == 1
    assert result.stderr.startswith("keryx: ")
    assert "KERYX_RESET_MODE" in result.stderr


def test_the_model_command_names_the_agent(home: dict[str, str]) -> None:
    def told(**variables: str) -> str:
        return invoke({**home, **variables}, "--print", "/model").stdout

    assert told().startswith(
        "Answers here come from the built-in guide (no model is set up). /model <provider:name> "
    )
    assert told(KERYX_MODEL="openai:gpt-5").startswith("Answers here come from openai:gpt-5. ")
    assert told(KERYX_AGENT_COMMAND="cat") == (
        "Answers here come from cat. It chooses its own models, so /model changes nothing.\n"
    )


def test_no_process_uses_a_new_store(home: dict[str, str]) -> None:
    assert "No process uses this store now." in invoke(home, "nodes").stdout
    assert json.loads(invoke(home, "nodes", "--json").stdout)["nodes"] == []


@pytest.fixture
def surroundings(home: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for name, value in home.items():
        monkeypatch.setenv(name, value)
    return home


async def test_a_gateway_serves_until_sigterm(surroundings: dict[str, str]) -> None:
    configuration = load_config()
    up = asyncio.Event()
    systems: list[System] = []

    def ready(system: System, _gateway: Gateway) -> None:
        systems.append(system)
        up.set()

    serving = asyncio.create_task(serve(configuration, ready=ready))
    await up.wait()
    shown = await asyncio.to_thread(invoke, surroundings, "nodes")
    assert f"gateway {systems[0].runtime.holder}" in shown.stdout
    answer = await asyncio.to_thread(invoke, surroundings, "--print", "hello")
    assert answer.stdout.startswith(SETUP)
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(serving, 30)


async def test_the_webhook_needs_its_secret(
    surroundings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERYX_PLATFORMS_WEBHOOK_ENABLED", "true")
    with pytest.raises(InvalidValue, match="needs a secret"):
        make_adapters(load_config())
    monkeypatch.setenv("KERYX_PLATFORMS_WEBHOOK_SECRET", "whsec_short")
    with pytest.raises(
        InvalidValue, match=r"^KERYX_PLATFORMS_WEBHOOK_SECRET: the webhook secret is not base64"
    ):
        make_adapters(load_config())
    monkeypatch.setenv("KERYX_PLATFORMS_WEBHOOK_SECRET", SECRET)
    async with open_system(load_config()) as system:
        assert [adapter.platform for adapter in system.adapters] == ["webhook"]


async def test_a_profile_stores_its_own_salt_for_user_ids(
    surroundings: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def salt() -> str | None:
        async with open_system(load_config()) as system:
            return system.runtime.settings.id_salt

    assert await salt() is None
    monkeypatch.setenv("KERYX_PROMPT_HASH_USER_IDS", "true")
    first = await salt()
    assert first
    assert await salt() == first
    kept = load_config().data_dir / "id-salt"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in kept.parent.iterdir() if path.name.startswith("id-salt")] == ["id-salt"]
    monkeypatch.setenv("KERYX_PROMPT_ID_SALT", "pepper")
    assert await salt() == "pepper"
    monkeypatch.delenv("KERYX_PROMPT_ID_SALT")
    monkeypatch.setenv("KERYX_HOME", str(tmp_path / "another"))
    assert await salt() not in (first, None)


async def test_loaded_objects_are_excluded_from_garbage_collection(
    surroundings: dict[str, str],
) -> None:
    gc.unfreeze()
    async with open_system(load_config()) as system:
        await finish_start(system)
        kept, left = gc.get_freeze_count(), len(gc.get_objects())
    gc.unfreeze()
    assert kept > 10 * left


def test_a_taken_port_is_reported_at_the_start_in_one_sentence(home: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "src"),
            "KERYX_PLATFORMS_WEBHOOK_ENABLED": "true",
            "KERYX_PLATFORMS_WEBHOOK_SECRET": SECRET,
            "KERYX_PLATFORMS_WEBHOOK_PORT": str(port),
            **home,
        }
        command = [sys.executable, "-m", "keryx", "serve"]
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as gateway:
            assert gateway.stderr is not None
            told = list(takewhile(lambda line: "keryx: ready as" not in line, gateway.stderr))
            gateway.terminate()
            rest = gateway.stderr.read()
    assert f"webhook is not connected: platforms.webhook.port {port} is taken" in "".join(told)
    assert "Traceback" not in "".join(told) + rest
    assert 'File "' not in "".join(told) + rest


def test_an_account_that_is_not_connected_is_listed_with_the_reason() -> None:
    account = Account(FakePlatform(account="b2").adapter())
    account.set_trouble("the port is taken")
    assert format_account(account) == "fake@b2 (not connected: the port is taken)"
    account.set_trouble(None)
    assert format_account(account) == "fake@b2"


def test_a_gateway_that_is_killed_leaves_nothing_behind(home: dict[str, str]) -> None:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src"), **home}
    command = [sys.executable, "-m", "keryx", "serve"]
    for number in (signal.SIGKILL, signal.SIGTERM):
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as gateway:
            assert gateway.stderr is not None
            assert any("keryx: ready as" in line for line in gateway.stderr)
            gateway.send_signal(number)
            gateway.stderr.read()
            assert gateway.wait(30) == (0 if number == signal.SIGTERM else -number)
    assert invoke(home, "--print", "hello").stdout.startswith(SETUP)
