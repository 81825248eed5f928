"""The tests of several processes are counted as those of one are, also when a process dies."""

import subprocess
import sys
from pathlib import Path

from tests.architecture.source import ROOT

MODULE = """
import os
import pytest

@pytest.fixture(scope="session")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("place")
    yield path
    (path.parent.parent / f"cleared-{os.getpid()}").touch()

@pytest.mark.parametrize("number", range(40))
def test_plain(number, place, tmp_path):
    print(f"said by {number}")
    assert number != 7
"""
DEADLY = """
import os

def test_before():
    pass

def test_deadly():
    os._exit(3)

def test_after():
    pass
"""


def run(tmp_path: Path, *arguments: str, **modules: str) -> tuple[int, str]:
    for name, text in modules.items():
        (tmp_path / f"{name}.py").write_text(text)
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "tests.workers",
            "-p",
            "no:cacheprovider",
            "-q",
            *arguments,
            ".",
        ],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.returncode, ran.stdout


def test_every_test_is_run_once_and_a_failure_shows_what_it_said(tmp_path: Path) -> None:
    code, said = run(tmp_path, "--workers=3", test_plain=MODULE)
    assert code == 1
    assert "1 failed, 39 passed" in said
    assert "said by 7" in said
    assert "said by 8" not in said
    assert 1 <= len(list(tmp_path.glob("**/cleared-*"))) <= 3


def test_what_a_dead_process_did_not_tell_has_failed(tmp_path: Path) -> None:
    code, said = run(tmp_path, "--workers=2", test_deadly=DEADLY, test_plain=MODULE.replace("!= 7", ">= 0"))
    assert code == 1
    assert "2 failed, 41 passed" in said
    assert "ended before it told" in said


def test_the_first_failure_ends_the_run_where_that_is_asked_for(tmp_path: Path) -> None:
    code, said = run(tmp_path, "--workers=2", "-x", test_plain=MODULE)
    assert code == 1
    assert "stopping after 1 failures" in said


def test_a_module_that_cannot_be_loaded_fails_the_run(tmp_path: Path) -> None:
    code, said = run(tmp_path, "--workers=2", test_broken="import nothing_like_this", test_plain=MODULE)
    assert code == 2
    assert "1 error" in said
