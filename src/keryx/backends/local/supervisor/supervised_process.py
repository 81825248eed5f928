"""Run one process from its start to its end, store its output, and serve requests meanwhile."""

import os
import select
import signal
import socket
import subprocess
import termios
import time
from contextlib import suppress

from .output_files import OutputFiles
from .protocol import CLOSE, CLOSED, DONE, ENDED, FULL, KILL, SupervisedCommand

PENDING_BYTES_MAX = 1_000_000
"""The limit of input that waits for a process which does not read it."""
LEFT_SECONDS = 0.5
"""The time between SIGTERM and SIGKILL for processes that are left after an end."""
DRAIN_SECONDS = 0.5
"""How long to wait for the end of output, which a process that left the group may keep open."""
LAST_READS = 64
LOOK_SECONDS = 0.05
CLIENT_SECONDS = 2.0
NOT_STARTED = 127
"""The exit code that a shell gives to a program that cannot be started."""
ROWS_AND_COLUMNS = (40, 120)

_CHUNK_BYTES = 65_536
_END_OF_INPUT = b"\x04"
_SIGNALS = (signal.SIGCHLD, signal.SIGTERM)


class SupervisedProcess:
    """One process, from its start to its end."""

    def __init__(self, command: SupervisedCommand, listener: socket.socket) -> None:
        self._command = command
        self._listener = listener
        self.output = OutputFiles(command.output_bytes_max)
        self.exit_code: int | None = None
        self.was_killed = False
        self._process: subprocess.Popen[bytes] | None = None
        self._source = -1
        """The descriptor of its output; -1 after the end of the output."""
        self._sink = -1
        """The descriptor of its input; -1 if it takes none."""
        self._pending = bytearray()
        self._ends_line = True
        self._is_closing = False
        self._kill_at: float | None = None

    @property
    def _group(self) -> int:
        """The id of its process group, which it leads."""
        assert self._process is not None
        return self._process.pid

    def run(self) -> None:
        """Run the process to its end, and serve requests meanwhile."""
        wake, waker = os.pipe()
        for end in (wake, waker):
            os.set_blocking(end, False)
        handlers = {each: signal.signal(each, _ignore) for each in _SIGNALS}
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
        if self._command.has_pty:
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
                self._command.arguments,
                stdin=given,
                stdout=taken,
                stderr=taken,
                cwd=self._command.workdir,
                env=self._command.environment,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            self.output.add(f"It could not be started: {error}\n".encode())
            self.exit_code = NOT_STARTED
        finally:
            for end in {given, taken}:
                os.close(end)

    def _is_over(self) -> bool:
        """Return whether it has ended, its group is empty, and all its output was read."""
        if self.exit_code is None:
            return False
        if self._kill_at is None or time.monotonic() > self._kill_at + DRAIN_SECONDS:
            return True  # it never began, or a process that left the group keeps its output open
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
            self._end_group(self._command.kill_seconds)
        assert self._process is not None
        self.exit_code = self._process.poll()
        if self.exit_code is not None:
            self._end_group(LEFT_SECONDS)

    def _end_group(self, seconds: float) -> None:
        """Send SIGTERM to the group, and SIGKILL after so long; only the first call counts."""
        if self._kill_at is None:
            self._signal(signal.SIGTERM)
            self._kill_at = time.monotonic() + seconds

    def _signal(self, number: int) -> bool:
        """Send a signal to the group; return whether a process received it."""
        try:
            os.killpg(self._group, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def _read(self) -> bool:
        """Store the available output; return whether there may be more at once."""
        if self._source < 0:
            return False
        try:
            data = os.read(self._source, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""  # this is how a terminal ends
        self.output.add(data)
        if data:
            return True
        os.close(self._source)
        if self._sink == self._source:
            self._sink = -1
        self._source = -1
        return False

    def _serve(self) -> None:
        """Serve one client, which has sent its request already or sends it at once."""
        with suppress(OSError):  # the client went away; its request is done, or was not complete
            connection, _ = self._listener.accept()
            with connection:
                connection.settimeout(CLIENT_SECONDS)
                request = bytearray()
                while len(request) <= PENDING_BYTES_MAX and (data := connection.recv(_CHUNK_BYTES)):
                    request += data
                connection.sendall(self.answer(bytes(request)))

    def answer(self, request: bytes) -> bytes:
        """Carry out a request and return the answer."""
        verb, data = request[:1], request[1:]
        if self.exit_code is not None:
            return ENDED
        if verb == KILL:
            self.was_killed = True
            self._end_group(self._command.kill_seconds)
            return DONE
        if self._sink < 0 or self._is_closing:
            return CLOSED
        if len(self._pending) + len(data) > PENDING_BYTES_MAX:
            return FULL
        if verb == CLOSE and self._command.has_pty:
            # In the middle of a line, the first one only submits the text so far.
            data = _END_OF_INPUT if self._ends_line else 2 * _END_OF_INPUT
        self._is_closing = verb == CLOSE and not self._command.has_pty
        if data:
            self._ends_line = data[-1:] in (b"\r", b"\n", _END_OF_INPUT)
        self._pending += data
        self._feed()
        return DONE

    def _feed(self) -> None:
        """Write pending input, as much as the process takes now."""
        try:
            del self._pending[: os.write(self._sink, self._pending)]
        except BlockingIOError:
            return
        except OSError:
            self._pending.clear()  # the process reads no more
            self._is_closing = True
        if self._is_closing and not self._pending and self._sink != self._source:
            os.close(self._sink)
            self._sink = -1


def _ignore(_number: int, _frame: object) -> None:
    """Do nothing: the signal wakes the loop. Ignored signals would be inherited by children."""


def has_living(group: int) -> bool:
    """Return whether a process of a group lives; True if the system does not tell.

    A zombie does not count, even if a slow init reaps it late.
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
