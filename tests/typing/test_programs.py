"""Programs that users would write are accepted, and wrong ones refused, by mypy and pyright at their strictest.

The checkers see Keryx as a user's do: built into a wheel and installed, in an environment without this source.
"""

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Awaitable
from pathlib import Path
from typing import Protocol

import pytest

from tests.architecture.source import ROOT
from tests.typing.programs import agents_session, async_program, handle_errors, match_results, sync_program

pytestmark = pytest.mark.anyio

PROGRAMS = Path(__file__).parent / "programs"
BIN = Path(sys.executable).parent

MYPY = """
[mypy]
strict = True
enable_error_code = ignore-without-code
cache_dir = /dev/null
[mypy-mcp.*,openai.*,pydantic.*]
follow_imports = skip
"""
"""The Agents SDK's own dependencies are skipped: reading them takes ten seconds."""

PYRIGHT = {
    "typeCheckingMode": "strict",
    "enableTypeIgnoreComments": False,
    "reportUnnecessaryTypeIgnoreComment": "error",
}


class Checker(Protocol):
    """Checks programs with one type checker."""

    def __call__(self, python: Path, folder: Path, *programs: Path) -> subprocess.CompletedProcess[str]: ...


class Program(Protocol):
    """A program that a user would write."""

    def main(self, address: str) -> Awaitable[None]: ...


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(cwd)}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python of an environment with the wheel of Keryx installed, beside the packages of the suite."""
    root = tmp_path_factory.mktemp("installed")
    built = run(BIN / "hatchling", "build", "-t", "wheel", "-d", root, cwd=ROOT)
    assert built.returncode == 0, built.stderr
    assert run(sys.executable, "-m", "venv", "--without-pip", root / "venv", cwd=root).returncode == 0
    [packages] = root.glob("venv/lib/python*/site-packages")
    [wheel] = root.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(packages)
    # A .pth file in a folder that a .pth file names is not read: the source of this checkout stays out.
    (packages / "suite.pth").write_text(sysconfig.get_path("purelib"))
    return root / "venv" / "bin" / "python"


def mypy(python: Path, folder: Path, *programs: Path) -> subprocess.CompletedProcess[str]:
    (folder / "mypy.ini").write_text(MYPY)
    return run(BIN / "mypy", "--config-file=mypy.ini", "--python-executable", python, *programs, cwd=folder)


def pyright(python: Path, folder: Path, *programs: Path) -> subprocess.CompletedProcess[str]:
    checked = {"include": [str(program) for program in programs]}
    (folder / "pyrightconfig.json").write_text(json.dumps(PYRIGHT | checked))
    return run(BIN / "basedpyright", "--pythonpath", python, cwd=folder)


def test_the_package_is_the_installed_one(python: Path, tmp_path: Path) -> None:
    where = run(python, "-c", "import keryx; print(keryx.__file__)", cwd=tmp_path).stdout
    assert Path(where).is_relative_to(python.parents[1])


@pytest.mark.parametrize(
    ("check", "complaint"),
    [(mypy, "Incompatible types in assignment"), (pyright, 'Type "Position" is not assignable')],
)
def test_programs_are_accepted_and_each_mistake_is_found(
    check: Checker, complaint: str, python: Path, tmp_path: Path
) -> None:
    # Beside the programs, a mistake without a mark shows that the checker looks and complains.
    planted = tmp_path / "planted.py"
    planted.write_text("import keryx\n\nwrong: keryx.Hit = keryx.Position(1, 2)\n")

    ended = check(python, tmp_path, PROGRAMS, planted)

    assert ended.returncode == 1
    [only] = [line for line in ended.stdout.splitlines() if " error: " in line]
    assert "planted.py:3:" in only
    assert complaint in only


def test_without_its_marker_the_package_counts_as_untyped(python: Path, tmp_path: Path) -> None:
    [marker] = python.parents[1].glob("lib/python*/site-packages/keryx/py.typed")
    marker.rename(tmp_path / "py.typed")
    try:
        ended = mypy(python, tmp_path, PROGRAMS / "match_results.py")
    finally:
        (tmp_path / "py.typed").rename(marker)
    assert "missing library stubs or py.typed marker" in ended.stdout


@pytest.mark.parametrize(
    "program", [agents_session, async_program, handle_errors, match_results], ids=lambda each: each.__name__
)
async def test_a_program_does_what_it_says(program: Program, tmp_path: Path) -> None:
    await program.main(str(tmp_path / "keryx.db"))


def test_a_program_without_an_event_loop_does_what_it_says(tmp_path: Path) -> None:
    sync_program.main(tmp_path / "keryx.db")
