"""The supervisor, run here instead of in a process of its own: output, input, and how the process ended."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from keryx.backends.local.folder import START, Folder, SupervisorGone
from keryx.backends.local.supervisor.main import listen, supervise, write_end
from keryx.backends.local.supervisor.output_files import OutputFiles
from keryx.backends.local.supervisor.protocol import CLOSE, CLOSED, CONTROL, DONE, FULL, KILL, WRITE
from keryx.backends.local.supervisor.supervised_process import has_living
from keryx.core.processes.backend import Ended
from keryx.subprocesses.run_program import at_terminal

PATIENCE_SECONDS = 20.0


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the process, in which its supervisor works."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(command: str, **others: Any) -> bytes:
    arguments = ["/bin/sh", "-c", command]
    usual = {
        "arguments": at_terminal(arguments) if others.get("has_pty") else arguments,
        "workdir": "/",
        "environment": {"PATH": os.environ["PATH"], "TERM": "dumb"},
        "has_pty": False,
        "output_bytes_max": 1_000_000,
        "kill_seconds": 0.1,
    }
    return json.dumps(usual | others).encode()


def run(told: bytes, meanwhile: Callable[[], None] | None = None) -> None:
    """Supervise in this thread, as signals demand, and do something in another one meanwhile."""
    with ThreadPoolExecutor() as pool, listen() as listener:
        doing: Future[None] | None = None if meanwhile is None else pool.submit(meanwhile)
        supervise(told, listener)
        if doing is not None:
            doing.result()


def ended(here: Path) -> Ended:
    sight = Folder(here).see()
    assert sight is not None
    assert sight.ended is not None
    return sight.ended


def output(here: Path) -> str:
    return Folder(here).read(start=0, bytes_max=1_000_000).data.decode()


def await_output(here: Path, text: str) -> None:
    """Wait until something is written."""
    for _ in range(round(PATIENCE_SECONDS / 0.01)):
        if text in output(here):
            return
        Event().wait(0.01)  # a file has no event
    pytest.fail(f"{text!r} was never written, only {output(here)!r}")


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_output_and_errors_are_kept_in_order_with_the_true_exit_code(here: Path) -> None:
    run(told("pwd; echo wrong >&2; echo $TERM; exit 7"))
    assert output(here) == "/\nwrong\ndumb\n"
    assert ended(here) == Ended(exit_code=7, was_killed=False, output_bytes=13)


def test_a_process_that_dies_of_a_signal_has_its_number(here: Path) -> None:
    run(told("kill -9 $$"))
    assert ended(here).exit_code == -9


@pytest.mark.parametrize("part", [b"", b'{"argu', told("touch ran")[:-1]])
def test_a_command_that_was_not_received_whole_is_not_run(here: Path, part: bytes) -> None:
    run(part)
    assert [path.name for path in here.iterdir()] == [CONTROL]


def test_a_command_that_cannot_be_started_ends_with_127(here: Path) -> None:
    run(told("true", workdir="/no/such/folder"))
    assert ended(here).exit_code == 127
    assert "It could not be started" in output(here)


def test_over_the_cap_the_newest_output_is_kept_and_all_of_it_counted(here: Path) -> None:
    run(told("seq 1 100000", output_bytes_max=10_000))
    assert ended(here).output_bytes == 588_895
    kept = Folder(here).read(start=0, bytes_max=1_000_000)
    assert 5_000 <= len(kept.data) <= 10_000
    assert kept.data.endswith(b"\n99999\n100000\n")
    assert (kept.start, kept.end, kept.total) == (kept.kept_from, 588_895, 588_895)
    last = Folder(here).read(start=None, bytes_max=7)
    assert (last.data, last.start) == (b"100000\n", 588_888)
    assert len(list(here.glob("output.*"))) == 2


def test_input_is_read_until_it_is_closed(here: Path) -> None:
    def talk() -> None:
        folder = Folder(here)
        assert folder.ask(b"wone\ntwo") == DONE
        await_output(here, "one")
        assert folder.ask(CLOSE) == DONE

    run(told("cat; echo; echo done"), talk)
    assert output(here) == "one\ntwo\ndone\n"
    assert ended(here).exit_code == 0
    with pytest.raises(SupervisorGone):
        Folder(here).ask(KILL)


def test_input_that_is_not_read_waits_up_to_a_bound(here: Path) -> None:
    def talk() -> None:
        folder = Folder(here)
        with socket.socket(socket.AF_UNIX) as nobody:
            nobody.connect(str(here / CONTROL))
        piece = WRITE + b"x" * 600_000
        assert folder.ask(piece) == DONE
        assert folder.ask(piece) == FULL
        assert folder.ask(CLOSE) == DONE
        assert folder.ask(WRITE) == CLOSED
        (here / "go").touch()

    run(told(f"until test -e {here}/go; do sleep 0.02; done; wc -c"), talk)
    assert output(here).strip() == "600000"


def test_writing_to_a_process_that_reads_no_more_is_refused(here: Path) -> None:
    def talk() -> None:
        await_output(here, "deaf")
        folder = Folder(here)
        assert folder.ask(b"wx") == DONE
        assert folder.ask(b"wx") == CLOSED
        (here / "go").touch()

    run(told(f"exec <&-; echo deaf; until test -e {here}/go; do sleep 0.02; done"), talk)
    assert ended(here).exit_code == 0


def test_a_terminal_echoes_lines_and_a_key_ends_the_input(here: Path) -> None:
    def talk() -> None:
        folder = Folder(here)
        await_output(here, "ready")
        assert folder.ask(b"wone\r") == DONE
        await_output(here, "one\r\none\r\n")
        assert folder.ask(b"wtwo") == DONE
        assert folder.ask(CLOSE) == DONE

    run(told("tty; stty size; echo ready; cat; exit 4", has_pty=True), talk)
    first, *others = output(here).splitlines()
    assert first.startswith("/dev/")
    assert others == ["40 120", "ready", "one", "one", "twotwo"]
    assert ended(here).exit_code == 4


@pytest.mark.parametrize("stubborn", [False, True])
def test_a_kill_ends_everything_it_started(here: Path, *, stubborn: bool) -> None:
    def kill() -> None:
        await_output(here, "\n")
        assert Folder(here).ask(KILL) == DONE

    trap = "trap '' TERM; " if stubborn else ""
    run(told(f"{trap}sleep 600 & echo $$ $!; while :; do wait; done"), kill)
    assert ended(here).was_killed
    assert ended(here).exit_code == (-9 if stubborn else -15)
    assert not any(map(runs, map(int, output(here).split())))


def test_the_supervisor_loads_the_standard_library_and_nothing_else() -> None:
    load = f"import runpy, sys; runpy.run_path({str(START)!r}); print(*sys.modules)"
    said = subprocess.run(
        [sys.executable, "-I", "-S", "-c", load], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in said.stdout.split()}
    assert loaded - sys.stdlib_module_names == {"__main__", "supervisor"}


def test_a_group_with_a_living_process_is_found() -> None:
    assert has_living(os.getpgid(0))
    assert not has_living(2**22 + 1)


def test_a_terminated_supervisor_ends_its_process(here: Path) -> None:
    def end() -> None:
        await_output(here, "ready")
        os.kill(os.getpid(), signal.SIGTERM)

    run(told("echo ready; exec sleep 600"), end)
    assert ended(here) == Ended(exit_code=-15, was_killed=False, output_bytes=6)


def test_processes_left_running_are_ended_and_detached_ones_not_waited_for(here: Path) -> None:
    daemon = f"setsid sh -c 'echo $$; touch {here}/away; exec sleep 600'"
    run(told(f"sleep 600 & echo $!; {daemon} & until test -e {here}/away; do sleep 0.02; done; exit 3"))
    left, away = map(int, output(here).split())
    assert ended(here).exit_code == 3
    assert not runs(left)
    assert runs(away)
    os.kill(away, signal.SIGKILL)


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_output_lost_to_a_full_disk_is_counted_and_later_output_kept(here: Path) -> None:
    kept = OutputFiles(1_000_000)
    kept.add(b"first,")
    with files_of_at_most(10):
        kept.add(b"second")
        kept.add(b"third")
    with files_of_at_most(0):
        kept.add(b"fourth")
        kept.add(b"fifth")
    kept.add(b"sixth")
    kept.close()
    assert kept.total == 33
    found = Folder(here).read(start=0, bytes_max=100)
    assert (found.data.endswith(b"sixth"), found.total) == (True, 33)


def test_the_end_is_written_whole_and_not_into_a_removed_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_end(exit_code=1, was_killed=False, output_bytes=2)
    assert ended(here) == Ended(exit_code=1, was_killed=False, output_bytes=2)
    (here / "gone").mkdir()
    monkeypatch.chdir(here / "gone")
    (here / "gone").rmdir()
    write_end(exit_code=1, was_killed=False, output_bytes=2)
    assert sorted(path.name for path in here.iterdir()) == ["end"]
