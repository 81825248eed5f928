"""The folder of one background process: its lock, its output, the record of its end, and the socket for requests.

The lock shows whether the process is supervised. The starter holds the lock before the folder is recorded, the
supervisor inherits it, and the kernel releases it when both are dead, however they died. All calls block, but briefly.
"""

import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from keryx.backends.local.supervisor import protocol
from keryx.clock import Micros
from keryx.core.processes.backend import Ended, Output, Sight

START: Final = Path(__file__).with_name("start_supervisor.py")
ANSWER_SECONDS: Final = 5.0
SOCKET_PATH_BYTES_MAX: Final = 100
"""Systems allow 103 to 107; the path of a data folder may be longer."""
TRIES: Final = 3
"""An output file may be deleted while it is opened, but hardly three times in a row."""


class SupervisorGone(Exception):
    """The folder has no supervisor."""


class SupervisorSilent(Exception):
    """The supervisor does not answer."""


class Folder:
    """One process's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def made(self) -> Iterator[int]:
        """Create the folder and hold its lock during a block; a supervisor that inherits the lock keeps it."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.mkdir(mode=0o700)
        lock = os.open(self.path / protocol.LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield lock
        finally:
            os.close(lock)

    def see(self) -> Sight | None:
        """Return the state of the folder; None if it does not exist."""
        try:
            changed_at = self.path.stat().st_mtime_ns // 1_000
        except FileNotFoundError:
            return None
        # In this order: the supervisor writes the end before it releases the lock.
        is_held = self._is_held()
        return Sight(is_held=is_held, ended=self._ended(), changed_at=changed_at)

    def read(self, *, start: int | None, bytes_max: int) -> Output:
        """Return the output from ``start`` on, or its end, with at most so many bytes."""
        for _ in range(TRIES):
            with suppress(FileNotFoundError):
                return self._read(start, bytes_max)
        return Output(data=b"", start=0, total=0)

    def ask(self, request: bytes) -> bytes:
        """Send a request and return the answer, or raise ``SupervisorGone`` or ``SupervisorSilent``."""
        with _reachable(self.path / protocol.CONTROL) as path, socket.socket(socket.AF_UNIX) as client:
            client.settimeout(ANSWER_SECONDS)
            try:
                client.connect(path)
                client.sendall(request)
                client.shutdown(socket.SHUT_WR)
                answer = client.recv(64)
            except (ConnectionError, FileNotFoundError) as error:
                raise SupervisorGone from error
            except OSError as error:
                raise SupervisorSilent from error
        if not answer:
            raise SupervisorGone
        return answer

    def remove(self) -> None:
        """Delete the folder."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _is_held(self) -> bool:
        try:
            lock = os.open(self.path / protocol.LOCK, os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            # A shared lock, so that two processes that only look do not take each other for a supervisor.
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
        return False

    def _ended(self) -> Ended | None:
        try:
            return Ended(**json.loads((self.path / protocol.END).read_bytes()))
        except FileNotFoundError:
            return None

    def _read(self, start: int | None, bytes_max: int) -> Output:
        files = sorted(self.path.glob(f"{protocol.OUTPUT}*"))
        if not files:
            return Output(data=b"", start=0, total=0)
        places = [(int(each.suffix[1:]), each) for each in files]
        total = places[-1][0] + files[-1].stat().st_size
        kept_from = places[0][0]
        start = max(kept_from, total - bytes_max if start is None else min(start, total))
        data = b""
        for place, path in places:
            with path.open("rb") as file:
                file.seek(max(0, start + len(data) - place))
                data += file.read(min(bytes_max, total - start) - len(data))
        return Output(data=data, start=start, total=total, kept_from=kept_from)


@contextmanager
def _reachable(path: Path) -> Iterator[str]:
    """Yield a path of the socket that is short enough for the system."""
    if len(os.fsencode(path)) <= SOCKET_PATH_BYTES_MAX:
        yield str(path)
        return
    with TemporaryDirectory(prefix="keryx-") as temporary:
        link = Path(temporary) / "way"
        link.symlink_to(path.parent)
        yield str(link / path.name)


class StartingSupervisor:
    """A supervisor that was started and waits for its command."""

    def __init__(self, folder: Folder, *, lock: int, environment: dict[str, str]) -> None:
        """Start the supervisor, or raise ``OSError``."""
        with (folder.path / protocol.TROUBLE).open("wb") as trouble:
            self._starting = subprocess.Popen(
                [sys.executable, "-I", "-S", str(START)],
                cwd=folder.path,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=trouble,
                pass_fds=(lock,),
                start_new_session=True,
            )
        assert self._starting.stdin is not None
        assert self._starting.stdout is not None
        with self._starting.stdout as output:
            line = output.readline()
        if self._starting.wait() or not line:
            self._starting.stdin.close()
            raise OSError(f"the supervisor ended with {self._starting.returncode}")
        self._input = self._starting.stdin
        self.pid = int(line)
        self.began_at = started_at(self.pid)
        """Since the boot of the machine; None if the system does not tell."""

    def send(self, command: protocol.SupervisedCommand) -> None:
        """Send the command."""
        with suppress(BrokenPipeError):
            self._input.write(json.dumps(vars(command)).encode())
        self.leave()

    def leave(self) -> None:
        """Close the input. A supervisor that did not get its whole command runs nothing and ends."""
        with suppress(BrokenPipeError):
            self._input.close()


def started_at(pid: int) -> Micros | None:
    """Return the start of a process since the boot of the machine, or None."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name of the program is in parentheses and may contain any character.
    ticks = int(words.rpartition(")")[2].split()[19])
    return ticks * 1_000_000 // os.sysconf("SC_CLK_TCK")
