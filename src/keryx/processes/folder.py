"""The folder of one process, as others see it: whether somebody is at work in it, the output, the end, and the way in.

The lock tells: its starter holds it before anybody knows of the folder, the supervisor inherits it, and the kernel lets
it go when both are dead, however they died. Everything here blocks, and only for moments.
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

from keryx.clock import Micros
from keryx.processes import supervisor
from keryx.tools.background import Output
from keryx.values import dataclass

ANSWER_SECONDS: Final = 5.0
SOCKET_PATH_BYTES_MAX: Final = 100
"""Systems take 103 to 107; data folders may lie deeper."""
TRIES: Final = 3
"""A file of output may go while it is looked for, but hardly three times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a process ended, in its supervisor's words."""

    exit_code: int
    was_killed: bool
    output_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What is seen of a folder at one moment."""

    is_held: bool
    """Whether its starter or its supervisor lives."""
    ended: Ended | None
    changed_at: Micros

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.ended is not None or not self.is_held


class Gone(Exception):
    """Nobody is at work in the folder."""


class Silent(Exception):
    """Somebody is at work in the folder and does not answer."""


class Folder:
    """One process's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def made(self) -> Iterator[int]:
        """Make it, and hold its lock for the length of a block; a supervisor that inherits it holds it on."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.mkdir(mode=0o700)
        lock = os.open(self.path / supervisor.LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield lock
        finally:
            os.close(lock)

    def see(self) -> Sight | None:
        """Return what is seen of it; None where there is no such folder."""
        try:
            changed_at = self.path.stat().st_mtime_ns // 1_000
        except FileNotFoundError:
            return None
        # In this order: who let go of the lock wrote the end before.
        is_held = self._is_held()
        return Sight(is_held=is_held, ended=self._ended(), changed_at=changed_at)

    def read(self, *, start: int | None, bytes_max: int) -> Output:
        """Return what was written from ``start`` on, or else the end of it; so much at most."""
        for _ in range(TRIES):
            with suppress(FileNotFoundError):
                return self._read(start, bytes_max)
        return Output(data=b"", start=0, total=0)

    def ask(self, request: bytes) -> bytes:
        """Send a request to the supervisor and return its answer, or raise ``Gone`` or ``Silent``."""
        with _reachable(self.path / supervisor.CONTROL) as path, socket.socket(socket.AF_UNIX) as client:
            client.settimeout(ANSWER_SECONDS)
            try:
                client.connect(path)
                client.sendall(request)
                client.shutdown(socket.SHUT_WR)
                answer = client.recv(64)
            except (ConnectionError, FileNotFoundError) as error:
                raise Gone from error
            except OSError as error:
                raise Silent from error
        if not answer:
            raise Gone
        return answer

    def remove(self) -> None:
        """Remove it with everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _is_held(self) -> bool:
        try:
            lock = os.open(self.path / supervisor.LOCK, os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            # Shared, so that those who only look do not take each other for somebody at work.
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
        return False

    def _ended(self) -> Ended | None:
        try:
            return Ended(**json.loads((self.path / supervisor.END).read_bytes()))
        except FileNotFoundError:
            return None

    def _read(self, start: int | None, bytes_max: int) -> Output:
        files = sorted(self.path.glob(f"{supervisor.OUTPUT}*"))
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


class Waiting:
    """A supervisor that was started and waits to be told what to run."""

    def __init__(self, folder: Folder, *, lock: int, environment: dict[str, str]) -> None:
        """Start it; raises ``OSError`` where that cannot be done."""
        with (folder.path / supervisor.TROUBLE).open("wb") as trouble:
            self._starting = subprocess.Popen(
                [sys.executable, "-I", "-S", supervisor.__file__],
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
        with self._starting.stdout as told:
            line = told.readline()
        if self._starting.wait() or not line:
            self._starting.stdin.close()
            raise OSError(f"the supervisor ended with {self._starting.returncode}")
        self._input = self._starting.stdin
        self.pid = int(line)
        self.began_at = started_at(self.pid)
        """Since the boot of the machine; None where the system does not tell."""

    def tell(self, job: supervisor.Job) -> None:
        """Tell it what to run."""
        with suppress(BrokenPipeError):
            self._input.write(json.dumps(vars(job)).encode())
        self.leave()

    def leave(self) -> None:
        """Tell it no more; where it was not told to the end, it runs nothing and ends."""
        with suppress(BrokenPipeError):
            self._input.close()


def started_at(pid: int) -> Micros | None:
    """Return when a process began, since the boot of the machine, or None."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name of the program stands in parentheses and may hold anything.
    ticks = int(words.rpartition(")")[2].split()[19])
    return ticks * 1_000_000 // os.sysconf("SC_CLK_TCK")
