"""``keryx --version`` costs next to nothing, and neither it nor ``--help`` loads what it does not need."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import keryx
from keryx.cli.commands import app
from keryx.cli.main import main
from tests.architecture.source import ROOT

DRIVERS = {"apsw", "psycopg", "psycopg_pool", "sqlite3"}
PROVIDERS = {"acp", "agents", "anthropic", "genai_prices", "google", "mcp", "openai", "pydantic_ai"}
WEB = {"aiohttp", "fastapi", "httpx", "pydantic", "requests", "starlette", "uvicorn"}
ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src")}

LIST_MODULES = """
import sys
from keryx.cli.main import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("modules:", *{name.partition(".")[0] for name in sys.modules})
"""


def modules_after(*arguments: str, **variables: str) -> set[str]:
    command = [sys.executable, "-c", LIST_MODULES, *arguments]
    environment = ENVIRONMENT | variables
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return set(said.rpartition("modules: ")[2].split())


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_no_driver_provider_or_web_module_is_loaded_by(argument: str) -> None:
    assert modules_after(argument) & (DRIVERS | PROVIDERS | WEB) == set()


def test_no_provider_is_loaded_while_the_guide_answers(tmp_path: Path) -> None:
    loaded = modules_after("--print", "hello", KERYX_HOME=str(tmp_path))
    assert loaded & (PROVIDERS | WEB) == set()


def test_the_version_is_told_without_loading_the_command_table() -> None:
    assert modules_after("--version") & {"click", "rich", "asyncio"} == set()


def test_the_version_costs_at_most_80_ms_more_than_python_itself() -> None:
    def seconds(*arguments: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], env=ENVIRONMENT, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # Processor time, and the best of several taken in turns: what is left is the cost, not the machine's other work.
    rounds = [(seconds("-c", "pass"), seconds("-m", "keryx", "--version")) for _ in range(7)]
    bare, version = (min(times) for times in zip(*rounds, strict=True))
    assert version <= bare + 0.080


@pytest.mark.parametrize("argument", ["--version", "-V"])
def test_the_version_is_the_package_s(
    argument: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["keryx", argument])
    main()
    assert capsys.readouterr().out == f"keryx {keryx.__version__}\n"
    # Among other options it is the command table that answers, with the same words.
    assert CliRunner().invoke(app, [argument]).output == f"keryx {keryx.__version__}\n"


def test_the_help_is_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["keryx", "--help"])
    with pytest.raises(SystemExit):
        main()
    assert "Usage: keryx" in capsys.readouterr().out


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        _ = keryx.opne  # type: ignore[attr-defined]


def test_the_package_runs_as_a_module() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "keryx", "--version"],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert keryx.__version__ in said
