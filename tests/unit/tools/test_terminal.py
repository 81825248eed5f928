"""Commands: what they are given, what is told of them, and that nothing of them outlives their call."""

import asyncio
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from keryx.core.approvals.rules.approval_rule import coverage
from keryx.core.processes.backend import Background, BackgroundCommand
from keryx.core.processes.rules import NoticePolicy
from keryx.core.values.json_value import JsonValue
from keryx.errors import ToolFailed
from keryx.subprocesses.run_program import Program, run_program
from keryx.tools.shell.terminal import Terminal
from keryx.tools.workspace import Workspaces
from tests.unit.tools.using import called, use_of

ENVIRONMENT = {"PATH": os.environ["PATH"], "GREETING": "hello"}
GIT = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.bareRepository",
    "GIT_CONFIG_VALUE_0": "explicit",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path.resolve()


class Jobs:
    """Starts nothing, and keeps what was to be started."""

    def __init__(self) -> None:
        self.started: list[tuple[BackgroundCommand, str, int]] = []

    async def start(self, job: BackgroundCommand, *, session_id: str, person_id: int) -> int:
        self.started.append((job, session_id, person_id))
        return 7


@pytest.fixture
def jobs() -> Jobs:
    return Jobs()


@pytest.fixture
def terminal(root: Path, jobs: Jobs) -> Terminal:
    return Terminal(
        Workspaces(default=root),
        environment=ENVIRONMENT,
        profile="main",
        background=cast(Background, jobs),
    )


def written(path: Path) -> list[int]:
    return [int(pid) for pid in path.read_text().split()] if path.exists() else []


async def pids(path: Path, *, count: int) -> list[int]:
    """Wait until a command wrote down so many pids."""
    async with asyncio.timeout(20):
        while len(written(path)) < count:  # noqa: ASYNC110 - a file has no event
            await asyncio.sleep(0.01)
    return written(path)


async def are_gone(found: list[int]) -> bool:
    """Wait until processes have ended; one that nobody reaps is no more than a name."""
    with suppress(TimeoutError):
        async with asyncio.timeout(20):
            while any(map(runs, found)):  # noqa: ASYNC110 - other people's children have no event
                await asyncio.sleep(0.01)
    return not any(map(runs, found))


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def test_a_command_runs_in_the_workspace_and_returns_its_output_in_order(
    terminal: Terminal, root: Path
) -> None:
    assert (terminal.offer.effect, terminal.offer.toolset) == ("ask", "terminal")
    assert str(root) in terminal.offer.description
    told = await called(terminal, command="echo one; echo two >&2; echo three; pwd; exit 3")
    assert told == f"Exit code 3.\none\ntwo\nthree\n{root}\n"
    assert await called(terminal, command="true") == "Exit code 0. It wrote nothing."
    assert await called(terminal, command="kill -9 $$") == "Exit code -9. It wrote nothing."
    assert await called(terminal, command="cat") == "Exit code 0. It wrote nothing.", "there is no input"


async def test_a_folder_of_the_workspace_can_be_chosen_and_no_other(terminal: Terminal, root: Path) -> None:
    (root / "sub").mkdir()
    (root / "out").symlink_to("/")
    assert await called(terminal, command="pwd", workdir="sub") == f"Exit code 0.\n{root / 'sub'}\n"
    with pytest.raises(ToolFailed, match="There is no folder 'nowhere'"):
        await called(terminal, command="pwd", workdir="nowhere")
    with pytest.raises(ToolFailed, match="leads out"):
        await called(terminal, command="pwd", workdir="out")


async def test_a_command_sees_only_the_variables_it_is_given(terminal: Terminal) -> None:
    told = await called(terminal, command="env")
    seen = dict(line.split("=", 1) for line in told.splitlines()[1:])
    for added_by_the_shell in ("PWD", "SHLVL", "_", "OLDPWD"):
        seen.pop(added_by_the_shell, None)
    assert seen == ENVIRONMENT | GIT | {
        "KERYX_SESSION_ID": "20260101_000000_0000abcd",
        "KERYX_PROFILE": "main",
        "PAGER": "cat",
        "TERM": "dumb",
    }


async def test_at_the_time_limit_a_command_is_ended_with_its_children(terminal: Terminal, root: Path) -> None:
    command = "echo began; sleep 600 & echo $! > pids; wait"
    told = await called(terminal, command=command, timeout_seconds=1)
    assert told == "It was ended after 1 s.\nbegan\n"
    assert await are_gone(await pids(root / "pids", count=1))


async def test_processes_left_by_a_command_are_ended(terminal: Terminal, root: Path) -> None:
    told = await called(terminal, command="sleep 600 & echo $! > pids")
    assert told == "Exit code 0. Processes that it left running were ended. It wrote nothing."
    assert await are_gone(await pids(root / "pids", count=1))


async def test_a_process_that_left_the_group_delays_nothing(terminal: Terminal, root: Path) -> None:
    daemon = "setsid sh -c 'echo $$ > pids; exec sleep 600'"
    told = await called(terminal, command=f"{daemon} & until test -s pids; do sleep 0.05; done; echo done")
    assert "done" in told
    for pid in await pids(root / "pids", count=1):
        with suppress(ProcessLookupError):
            os.kill(pid, 9)


@pytest.mark.parametrize("stubborn", [False, True])
async def test_a_stop_ends_a_command_and_its_children_at_once(
    terminal: Terminal, root: Path, *, stubborn: bool
) -> None:
    trap = "trap '' TERM; " if stubborn else ""
    command = f"{trap}sleep 600 & echo $$ $! > pids; while :; do wait; done"
    running = asyncio.create_task(called(terminal, command=command, timeout_seconds=600))
    found = await pids(root / "pids", count=2)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert running.cancelled()
    assert await are_gone(found)


async def test_much_output_is_cut_in_the_middle(root: Path) -> None:
    program = Program(
        arguments=["/bin/sh", "-c", "seq 1 100000"],
        folder=root,
        environment=ENVIRONMENT,
        seconds=60,
        output_bytes_max=1_000,
    )
    ran = await run_program(program)
    assert ran.output.startswith("1\n2\n3\n")
    assert ran.output.endswith("\n99999\n100000\n")
    assert "[587895 bytes of the output are left out here.]" in ran.output
    assert len(ran.output) < 1_100


async def test_a_command_gets_a_terminal_on_request(terminal: Terminal, root: Path) -> None:
    colour = "printf '\\033[31mred\\033[0m\\033]0;title\\007\\n'"
    command = f"test -t 1 && tty && stty size < /dev/tty && {colour}; cat; exit 4"
    told = (await called(terminal, command=command, pty=True, timeout_seconds=60)).split("\n")
    assert told[0] == "Exit code 4."
    assert told[1].startswith("/dev/")
    assert told[2:] == ["40 120", "red", ""]
    running = asyncio.create_task(called(terminal, command="echo $$ > pids; sleep 600", pty=True))
    found = await pids(root / "pids", count=1)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert await are_gone(found)


async def test_a_command_that_cannot_be_started_is_reported(root: Path) -> None:
    for arguments in (["/no/such/program"], ["/bin/echo", "a\0b"]):
        program = Program(arguments=arguments, folder=root, environment={}, seconds=60)
        with pytest.raises(ToolFailed, match="cannot be started"):
            await run_program(program)


async def test_a_program_that_does_not_read_its_whole_input_still_ends(root: Path) -> None:
    program = Program(
        arguments=["/bin/sh", "-c", "head -c 3; exit 5"],
        folder=root,
        environment=ENVIRONMENT,
        seconds=60,
        stdin=b"x" * 1_000_000,
    )
    ran = await run_program(program)
    assert (ran.exit_code, ran.output) == (5, "xxx")


async def test_a_command_in_the_background_is_started_with_what_it_needs(
    terminal: Terminal, jobs: Jobs, root: Path
) -> None:
    (root / "sub").mkdir()
    told = await called(terminal, command="make all", background=True, workdir="sub")
    assert told.startswith(
        "Process 7 runs in the background. You get a notice when it ends. The tool process"
    )
    [(job, session_id, person_id)] = jobs.started
    assert (job.command, job.folder, job.has_pty) == ("make all", root / "sub", False)
    assert job.notice == NoticePolicy()
    assert job.environment == {
        **ENVIRONMENT,
        **GIT,
        "PAGER": "cat",
        "TERM": "dumb",
        "KERYX_PROFILE": "main",
        "KERYX_SESSION_ID": session_id,
    }
    assert (session_id, person_id) == (use_of().session_id, 1)
    wishes: dict[str, JsonValue] = {"watch": "ready", "every_minutes": 5, "quiet": True, "pty": True}
    told = await called(terminal, command="make", background=True, **wishes)
    assert "You get a notice when it first writes 'ready', and every 5 minutes." in told
    job, *_ = jobs.started[-1]
    assert job.notice == NoticePolicy(on_exit=False, patterns=("ready",), every_minutes=5)
    assert (job.has_pty, job.environment["TERM"]) == (True, "xterm-256color")
    assert "You get a notice" not in await called(terminal, command="make", background=True, quiet=True)


def test_a_background_command_is_asked_about_each_time(terminal: Terminal, root: Path) -> None:
    use = use_of(command="git gui", background=True)
    assert terminal.question(use) == (
        f"May I run this command in the background, with input from the agent, in {root}?\n\ngit gui"
    )
    assert coverage(terminal.pattern(use), ["git gui"]) is None


def test_the_question_shows_everything_that_would_run_and_where(terminal: Terminal, root: Path) -> None:
    assert (
        terminal.question(use_of(command="git status")) == f"May I run this command in {root}?\n\ngit status"
    )
    elsewhere = replace(use_of(command="make", workdir="sub"), workspace="/srv/work")
    assert terminal.question(elsewhere) == "May I run this command in /srv/work/sub?\n\nmake"
    hidden = use_of(command="ls\r\x1b[2Krm -rf ~\n\u202etxt", workdir="a\nb")
    assert terminal.question(hidden) == (
        f"May I run this command in {root}/a\\nb?\n\nls\\r\\x1b[2Krm -rf ~\n\\u202etxt"
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"command": "make", "background": True, "timeout_seconds": 9}, "is not for the background"),
        ({"command": "make", "watch": "done"}, "'watch' is for what runs in the background"),
        ({"command": "make", "quiet": True}, "'quiet' is for what runs in the background"),
        ({"command": "make", "background": True, "watch": "x" * 201}, "give 1 to 200 characters"),
        ({"command": "x" * 3_001}, "The command has 3001 characters"),
        ({"command": "a\0b"}, "a NUL character"),
        ({}, "Give 'command'"),
        ({"command": "make", "timeout_seconds": 601}, "must be at most 600"),
    ],
)
async def test_a_call_that_cannot_run_is_not_asked_about(
    terminal: Terminal, arguments: dict[str, JsonValue], sentence: str
) -> None:
    with pytest.raises(ToolFailed, match=sentence):
        terminal.question(use_of(**arguments))
    with pytest.raises(ToolFailed, match=sentence):
        await called(terminal, **arguments)


@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        ("git status", "git status *"),
        (" git log --oneline -n 3 ", "git log *"),
        ("ls", "ls *"),
        *(
            (command, command)
            for command in (
                "./run tests/unit",
                "rm -rf build",
                "python3.11 a.py",
                "git status; rm -rf /",
                "git status && make",
                "git log | sh",
                "git log > ~/.bashrc",
                "git log $(rm x)",
                "git log `rm x`",
                "git log\nrm x",
                "git log & rm x",
                'git log "a b"',
                "git log $HOME",
                "FOO=1 git log",
                "sudo ls",
                "/usr/bin/env ls",
                "sh run.sh",
                "python3 -c print",
            )
        ),
    ],
)
def test_a_standing_approval_covers_other_arguments_only_of_read_only_programs(
    terminal: Terminal, command: str, pattern: str
) -> None:
    assert terminal.pattern(use_of(command=command)) == pattern


async def test_a_folder_written_by_file_tools_cannot_configure_git(terminal: Terminal, root: Path) -> None:
    for folder in ("objects", "refs"):
        (root / folder).mkdir()
    (root / "HEAD").write_text("ref: refs/heads/main\n")
    (root / "config").write_text(
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = echo > ran; false\n"
    )
    told = await called(terminal, command="git status")
    assert "cannot use bare repository" in told
    assert not (root / "ran").exists()
