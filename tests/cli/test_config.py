"""``keryx config`` shows the origin of each value, and changes the user's file."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from keryx.cli.config import command
from keryx.config import WELCOME

ROOT = Path(__file__).parents[2]
Run = Callable[..., Result]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home" / "main"


@pytest.fixture
def run(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run ``keryx config`` with a home of its own."""
    for name in [name for name in os.environ if name.startswith("KERYX_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("KERYX_HOME", str(home.parent))
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments: str, **variables: str) -> Result:
        return CliRunner().invoke(command, arguments, env=variables)

    return invoke


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)


def rows(result: Result) -> dict[str, list[str]]:
    assert result.exit_code == 0, result.stderr
    return {name: rest for name, *rest in map(str.split, result.stdout.splitlines())}


def test_show_prints_every_value_and_its_origin(run: Run, home: Path) -> None:
    write(
        home / "config.yaml",
        "# mine\nmodel: openai:b\npersonalities:\n  poet: |\n    In verse.\n    Always.\n",
    )
    write(home / ".env", "KERYX_PLATFORMS_WEBHOOK_SECRET=tell-nobody\n")

    shown = rows(run("show", KERYX_TURNS_MAX="7"))

    assert shown["model"] == ["openai:b", f"{home / 'config.yaml'}:2"]
    assert shown["turns_max"] == ["7", "KERYX_TURNS_MAX"]
    assert shown["scope.dm"] == ["chat", "default"]
    assert shown["platforms.webhook.secret"] == ["set", f"{home / '.env'}:1"]
    assert shown["personalities.poet"] == ["In", "verse.", "Always.", f"{home / 'config.yaml'}:4"]
    assert " ".join(shown["welcome"]) == f"{WELCOME[:59]}… default"


def test_get_prints_one_whole_value(run: Run, home: Path) -> None:
    write(home / "config.yaml", "personalities:\n  poet: |\n    In verse.\n    Always.\n")
    assert run("get", "timezone").stdout == "UTC\n"
    assert run("get", "database").stdout == f"{home / 'keryx.db'}\n"
    assert run("get", "platforms.webhook.secret").stdout == "not set\n"
    assert run("get", "personalities.poet").stdout == "In verse.\nAlways.\n\n"


def test_misplaced_files_above_the_profile_s_folder_are_reported(run: Run, home: Path) -> None:
    write(home.parent / "config.yaml", "timezone: Europe/Rome\n")
    write(home.parent / ".env", "KERYX_PLATFORMS_WEBHOOK_SECRET=tell-nobody\n")
    for arguments in (["show"], ["get", "timezone"], ["path"]):
        told = run(*arguments)
        assert told.exit_code == 0
        assert "Europe/Rome" not in told.stdout
        assert told.stderr.splitlines() == [
            f"{home.parent / name} is not read: move it to {home}" for name in ("config.yaml", ".env")
        ]
    write(home / "config.yaml", "timezone: Europe/Rome\n")
    (home.parent / "config.yaml").unlink()
    (home.parent / ".env").unlink()
    assert run("show").stderr == ""


def test_get_lists_the_settings_of_a_group(run: Run) -> None:
    group = run("get", "busy")
    assert group.exit_code == 1
    assert group.stderr == "busy is a group of settings: busy.mode, busy.on.<where>\n"
    assert "reset.on.<where>.mode" in run("get", "reset.on").stderr


def test_get_names_the_nearest_setting(run: Run) -> None:
    unknown, unset = run("get", "timezon"), run("get", "personalities.poet")
    assert (unknown.exit_code, unknown.stdout) == (1, "")
    assert unknown.stderr == "there is no setting 'timezon'; did you mean timezone?\n"
    assert (unset.exit_code, unset.stderr) == (1, "personalities.poet is not set\n")


def test_set_prints_the_value_and_the_file(run: Run, home: Path) -> None:
    result = run("set", "timezone", "Europe/Rome")
    assert (result.exit_code, result.stdout) == (
        0,
        f"timezone = Europe/Rome was written to {home / 'config.yaml'}.\n",
    )
    assert (home / "config.yaml").read_text() == "timezone: Europe/Rome\n"
    assert run("get", "timezone").stdout == "Europe/Rome\n"


def test_set_reports_a_source_that_overrides_the_value(run: Run, home: Path) -> None:
    result = run("set", "timezone", "Europe/Rome", KERYX_TIMEZONE="Asia/Tokyo")
    assert result.stdout.splitlines()[1:] == ["KERYX_TIMEZONE overrides it: timezone stays Asia/Tokyo."]


def test_set_refuses_a_value_that_would_not_load(run: Run, home: Path) -> None:
    result = run("set", "reset.mode", "weekly")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines() == [
        "reset.mode: 'weekly' is not known; use one of none, idle, daily, both",
        "Nothing was written.",
    ]
    assert not home.exists()


def test_a_wrong_configuration_is_reported_on_stderr_and_path_still_works(run: Run, home: Path) -> None:
    write(home / "config.yaml", "modle: x\nturns_max: 0\n")
    shown = run("show")
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert shown.stderr.splitlines() == [
        f"{home / 'config.yaml'}:1: there is no setting 'modle'; did you mean model?",
        f"{home / 'config.yaml'}:2: turns_max: '0' is not valid; write a whole number from 1 to 10000",
    ]
    assert run("path").stdout == f"{home / 'config.yaml'}\n"


def test_a_wrong_profile_name_is_reported(run: Run) -> None:
    result = run("path", KERYX_PROFILE="../x")
    assert result.exit_code == 1
    assert result.stderr.startswith("KERYX_PROFILE: the profile name '../x' is not valid;")


@pytest.mark.parametrize("words", [[], ["show"], ["get"], ["set"], ["path"]])
def test_every_help_ends_with_an_example(run: Run, words: list[str]) -> None:
    assert "Example:  " in run(*words, "--help").stdout


def test_it_runs_as_a_program(home: Path, tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src"), "KERYX_HOME": str(home.parent)}
    program = [
        sys.executable,
        "-c",
        "from keryx.cli.config import command; command()",
        "set",
        "scope.dm",
        "person",
    ]
    subprocess.run(program, env=environ, cwd=tmp_path, check=True, capture_output=True)
    assert (home / "config.yaml").read_text() == "scope:\n  dm: person\n"
