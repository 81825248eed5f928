"""The detached child: runs one background process, keeps its output and its input, and writes down how it ended.

It stands alone, with the standard library and nothing of Keryx, so that it starts fast, stays small and outlives
whoever started it. It works in the folder of its process (see ``folder``), whose lock it inherits and holds until it
ends. Nothing is run before it was told everything; where its starter dies before that, it ends too.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import termios
import time
from contextlib import suppress

CONTROL = "control"
"""The socket on which it is told what to write, and to kill."""
LOCK = "lock"
END = "end"
"""How the process ended; it is there whole, or not at all."""
OUTPUT = "output."
"""The files of the output begin with it and end with the place of their first byte in all that was written."""
TROUBLE = "trouble"
"""What the supervisor itself had to complain of."""

WRITE, CLOSE, KILL = b"w", b"c", b"k"
"""How a request begins; what is to be written follows."""
DONE, ENDED, CLOSED, FULL = b"done", b"ended", b"closed", b"full"
"""How it is answered."""

PENDING_BYTES_MAX = 1_000_000
"""How much input waits for a process that does not read it."""
LEFT_SECONDS = 0.5
"""How long what a process left running when it ended by itself may tidy up."""
DRAIN_SECONDS = 0.5
"""How long output is waited for that may never end, because somebody who left the group holds it open."""
LAST_READS = 64
LOOK_SECONDS = 0.05
CLIENT_SECONDS = 2.0
RETRY_SECONDS = 1.0
NOT_STARTED = 127
"""The exit code a shell gives to what cannot be started."""
ROWS_AND_COLUMNS = (40, 120)

_CHUNK_BYTES = 65_536
_END_OF_INPUT = b"\x04"
_SIGNALS = (signal.SIGCHLD, signal.SIGTERM)


class Job:
    """What is run, where, with which variables, what is kept of its output, and how long it may tidy up when killed."""

    def __init__(
        self,
        *,
        arguments: list[str],
        workdir: str,
        environment: dict[str, str],
        has_pty: bool,
        output_bytes_max: int,
        kill_seconds: float,
    ) -> None:
        self.arguments = arguments
        self.workdir = workdir
        self.environment = environment
        self.has_pty = has_pty
        self.output_bytes_max = output_bytes_max
        self.kill_seconds = kill_seconds


class Output:
    """What the process wrote: at most two files, of which the older one goes when the newer one is full.

    Every byte counts, whether it is kept or not, and each file says where it begins.
    """

    def __init__(self, bytes_max: int) -> None:
        self.total = 0
        self._half = max(1, bytes_max // 2)
        self._room = 0
        self._names: list[str] = []
        self._file = -1

    def add(self, data: bytes) -> None:
        """Keep it; what finds no place on the disk is counted and lost, and never holds up the process."""
        while data:
            written = len(data)
            try:
                if not self._room:
                    self._begin()
                written = os.write(self._file, data[: self._room])
                self._room -= written
            except OSError:
                self._room = 0
            self.total += written
            data = data[written:]

    def close(self) -> None:
        """Let what was written be on the disk, as far as it can be."""
        if self._file >= 0:
            with suppress(OSError):
                os.fsync(self._file)
            os.close(self._file)
            self._file = -1

    def _begin(self) -> None:
        """Begin a new file at the present place."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            if os.stat(self._names[-1]).st_size == 0:
                os.unlink(self._names.pop())  # the disk was full
        while len(self._names) > 1:
            os.unlink(self._names.pop(0))
        name = f"{OUTPUT}{self.total:020d}"
        self._file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._names.append(name)
        self._room = self._half


class Supervised:
    """One process, from its start to its end."""

    def __init__(self, job: Job, listener: socket.socket) -> None:
        self._job = job
        self._listener = listener
        self.output = Output(job.output_bytes_max)
        self.exit_code: int | None = None
        self.was_killed = False
        self._process: subprocess.Popen[bytes] | None = None
        self._source = -1
        """Where its output comes from; -1 when no more comes."""
        self._sink = -1
        """Where its input goes to; -1 when it takes none."""
        self._pending = bytearray()
        self._ends_line = True
        self._is_closing = False
        self._kill_at: float | None = None

    @property
    def _group(self) -> int:
        """The number of its process group, which it leads."""
        assert self._process is not None
        return self._process.pid

    def run(self) -> None:
        """Run it to its end, and serve whoever asks meanwhile."""
        wake, waker = os.pipe()
        for end in (wake, waker):
            os.set_blocking(end, False)
        handlers = {each: signal.signal(each, _heard) for each in _SIGNALS}
        previous = signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        try:
            self._start()
            while not self._is_over():
                self._step(wake)
            for _ in range(LAST_READS):
                if not self._read():
                    break
        finally:
            signal.set_wakeup_fd(previous)
            for number, handler in handlers.items():
                signal.signal(number, handler)
            for end in (wake, waker, *{self._source, self._sink} - {-1}):
                os.close(end)
            self.output.close()

    def _start(self) -> None:
        if self._job.has_pty:
            ours, theirs = os.openpty()
            termios.tcsetwinsize(theirs, ROWS_AND_COLUMNS)
            self._source = self._sink = ours
            given, taken = theirs, theirs
        else:
            self._source, taken = os.pipe()
            given, self._sink = os.pipe()
        for end in (self._source, self._sink):
            os.set_blocking(end, False)
        try:
            self._process = subprocess.Popen(
                self._job.arguments,
                stdin=given,
                stdout=taken,
                stderr=taken,
                cwd=self._job.workdir,
                env=self._job.environment,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            self.output.add(f"It could not be started: {error}\n".encode())
            self.exit_code = NOT_STARTED
        finally:
            for end in {given, taken}:
                os.close(end)

    def _is_over(self) -> bool:
        """Say whether it has ended, nothing of its group is left, and all it wrote was read."""
        if self.exit_code is None:
            return False
        if self._kill_at is None or time.monotonic() > self._kill_at + DRAIN_SECONDS:
            return True  # it never began, or somebody who went away holds on to its output
        return self._source < 0 and not (self._signal(0) and has_living(self._group))

    def _step(self, wake: int) -> None:
        reading = [each for each in (wake, self._listener.fileno(), self._source) if each >= 0]
        writing = [self._sink] if self._sink >= 0 and self._pending else []
        timeout = None if self._kill_at is None else LOOK_SECONDS
        readable, writable, _ = select.select(reading, writing, [], timeout)
        if wake in readable:
            self._note_signals(os.read(wake, _CHUNK_BYTES))
        if self._listener.fileno() in readable:
            self._serve()
        if self._source in readable:
            self._read()
        if self._sink in writable:
            self._feed()
        if self._kill_at is not None and time.monotonic() > self._kill_at:
            self._signal(signal.SIGKILL)

    def _note_signals(self, numbers: bytes) -> None:
        if signal.SIGTERM in numbers:
            self._end_group(self._job.kill_seconds)
        assert self._process is not None
        self.exit_code = self._process.poll()
        if self.exit_code is not None:
            self._end_group(LEFT_SECONDS)

    def _end_group(self, seconds: float) -> None:
        """Ask everything of the group to end, and let it be made to after so long; the first word counts."""
        if self._kill_at is None:
            self._signal(signal.SIGTERM)
            self._kill_at = time.monotonic() + seconds

    def _signal(self, number: int) -> bool:
        """Send a signal to the group; say whether there is somebody in it."""
        try:
            os.killpg(self._group, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def _read(self) -> bool:
        """Keep what there is of the output; say whether there may be more at once."""
        if self._source < 0:
            return False
        try:
            data = os.read(self._source, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""  # so a terminal ends
        self.output.add(data)
        if data:
            return True
        os.close(self._source)
        if self._sink == self._source:
            self._sink = -1
        self._source = -1
        return False

    def _serve(self) -> None:
        """Do what one client asks; it has sent all of it by now, or will at once."""
        with suppress(OSError):  # it went away; what it asked is done, or was not asked to the end
            connection, _ = self._listener.accept()
            with connection:
                connection.settimeout(CLIENT_SECONDS)
                request = bytearray()
                while len(request) <= PENDING_BYTES_MAX and (data := connection.recv(_CHUNK_BYTES)):
                    request += data
                connection.sendall(self.answer(bytes(request)))

    def answer(self, request: bytes) -> bytes:
        """Do what is asked and return the answer."""
        verb, data = request[:1], request[1:]
        if self.exit_code is not None:
            return ENDED
        if verb == KILL:
            self.was_killed = True
            self._end_group(self._job.kill_seconds)
            return DONE
        if self._sink < 0 or self._is_closing:
            return CLOSED
        if len(self._pending) + len(data) > PENDING_BYTES_MAX:
            return FULL
        if verb == CLOSE and self._job.has_pty:
            # In the middle of a line the first one only hands over what was typed.
            data = _END_OF_INPUT if self._ends_line else 2 * _END_OF_INPUT
        self._is_closing = verb == CLOSE and not self._job.has_pty
        if data:
            self._ends_line = data[-1:] in (b"\r", b"\n", _END_OF_INPUT)
        self._pending += data
        self._feed()
        return DONE

    def _feed(self) -> None:
        """Write what waits, as much as is taken now."""
        try:
            del self._pending[: os.write(self._sink, self._pending)]
        except BlockingIOError:
            return
        except OSError:
            self._pending.clear()  # it reads no more
            self._is_closing = True
        if self._is_closing and not self._pending and self._sink != self._source:
            os.close(self._sink)
            self._sink = -1


def _heard(_number: int, _frame: object) -> None:
    """Let the signal wake the loop, which does the rest; to be ignored would be passed on to children."""


def has_living(group: int) -> bool:
    """Say whether anybody of a process group lives; where the system does not tell, somebody may.

    Who has ended is nobody, also where an init that is none takes its time to reap them.
    """
    try:
        names = os.listdir("/proc")
    except OSError:
        return True
    for name in filter(str.isdigit, names):
        with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
            state, _, its_group = file.read().rpartition(b")")[2].split()[:3]
            if int(its_group) == group and state not in b"ZX":
                return True
    return False


def listen() -> socket.socket:
    """Be reachable from now on; the path is short because it counts from the folder, which may lie deep."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(CONTROL)
    listener.listen(16)
    listener.settimeout(0.0)
    return listener


def write_end(*, exit_code: int, was_killed: bool, output_bytes: int) -> None:
    """Write down how it ended, whole or not at all, as soon as the disk takes it."""
    record = {"exit_code": exit_code, "was_killed": was_killed, "output_bytes": output_bytes}
    while True:
        try:
            with open(f"{END}.new", "w", encoding="ascii") as file:
                json.dump(record, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(f"{END}.new", END)
            folder = os.open(".", os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
        except FileNotFoundError:
            return  # the folder was removed: nobody is there to read it
        except OSError:
            time.sleep(RETRY_SECONDS)
        else:
            return


def supervise(told: bytes, listener: socket.socket) -> None:
    """Run what is told to its end; what was not told to its end is not run."""
    try:
        job = Job(**json.loads(told))
    except ValueError:
        return
    supervised = Supervised(job, listener)
    supervised.run()
    assert supervised.exit_code is not None
    write_end(
        exit_code=supervised.exit_code,
        was_killed=supervised.was_killed,
        output_bytes=supervised.output.total,
    )


def main() -> None:
    """Detach, tell the pid, and wait to be told what to run."""
    listener = listen()
    pid = os.fork()
    if pid:
        os.write(1, b"%d\n" % pid)
        os._exit(0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    told = sys.stdin.buffer.read()
    os.dup2(nowhere, 0)
    supervise(told, listener)


if __name__ == "__main__":
    main()
