"""Run a program until it ends. At its time limit, or when its task is cancelled, end it and everything it started.

The program gets its own process group, and no process of the group outlives the call. A process that left the group (a
daemon) cannot be ended.
"""

import asyncio
import os
import pty
import signal
import sys
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from keryx.errors import ToolFailed
from keryx.values import dataclass

SHELL: Final = "/bin/sh"
GRACE_SECONDS: Final = 0.5
"""The time between SIGTERM and SIGKILL; a stop must take effect within a second."""
LOOK_SECONDS: Final = 0.02
ROWS_AND_COLUMNS: Final = (40, 120)

_AT_TERMINAL: Final = "import os, sys; os.login_tty(0); os.execvp(sys.argv[1], sys.argv[1:])"
_END_OF_INPUT: Final = b"\x04"


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program to run: its arguments, folder, environment and time limit."""

    arguments: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    seconds: float
    stdin: bytes = b""
    has_pty: bool = False
    output_bytes_max: int = 1_000_000
    """The output that is kept; above this, the middle is dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The outcome of a program."""

    exit_code: int | None
    """None after the time limit. For a program that a signal ended, the negative number of the signal."""
    output: str
    """Standard output and standard error, in the order in which they were written."""
    left_running: bool
    """Whether other processes of its group still ran at its end. They were ended."""


def at_terminal(arguments: Sequence[str]) -> list[str]:
    """Return the arguments that run a program with its standard input as its controlling terminal.

    Only a process itself can take a controlling terminal, so a small program takes it and then becomes the program.
    """
    return [sys.executable, "-I", "-S", "-c", _AT_TERMINAL, *arguments]


async def run_program(program: Program) -> RunResult:
    """Run a program and return its outcome; raise ``ToolFailed`` if it cannot be started."""
    output = _Output(program.output_bytes_max)
    ours, theirs = pty.openpty() if program.has_pty else os.pipe()
    reading, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: output, os.fdopen(ours, "rb", buffering=0)
    )
    try:
        try:
            process = await _start(program, theirs)
        finally:
            if program.has_pty:
                os.write(ours, _END_OF_INPUT)
            os.close(theirs)
        exit_code, left_running = await _wait(process, program)
        with suppress(TimeoutError):
            # A process that left the group may keep the output open.
            await asyncio.wait_for(output.ended.wait(), GRACE_SECONDS)
    finally:
        reading.close()
    return RunResult(exit_code=exit_code, output=output.text, left_running=left_running)


async def _start(program: Program, output: int) -> asyncio.subprocess.Process:
    arguments = program.arguments
    if program.has_pty:
        termios.tcsetwinsize(output, ROWS_AND_COLUMNS)
        arguments = at_terminal(arguments)
    source = asyncio.subprocess.PIPE if program.stdin else asyncio.subprocess.DEVNULL
    try:
        return await asyncio.create_subprocess_exec(
            *arguments,
            stdin=output if program.has_pty else source,
            stdout=output,
            stderr=output,
            cwd=program.folder,
            env=program.environment,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise ToolFailed(f"{program.arguments[0]} cannot be started: {error}.") from error


async def _wait(process: asyncio.subprocess.Process, program: Program) -> tuple[int | None, bool]:
    """Return the exit code, None after the time limit, and whether processes of the group still ran."""
    exit_code: int | None = None
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(program.seconds):
                await _feed(process, program.stdin)
                exit_code = await process.wait()
    finally:
        left = await _end_group(process.pid)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), GRACE_SECONDS)
    return exit_code, left and exit_code is not None


async def _feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    if process.stdin is not None:
        with suppress(BrokenPipeError, ConnectionResetError):  # the program may end without reading all of it
            process.stdin.write(data)
            await process.stdin.drain()
        process.stdin.close()


async def _end_group(group: int) -> bool:
    """End a process group with SIGTERM, then SIGKILL. Return whether any process ran."""
    if not signal_group(group, signal.SIGTERM):
        return False
    try:
        for _ in range(round(GRACE_SECONDS / LOOK_SECONDS)):
            # The system sends no event at the end of a group.
            await asyncio.sleep(LOOK_SECONDS)
            if not signal_group(group, 0):
                break
    finally:
        signal_group(group, signal.SIGKILL)
    return True


def signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group. Return whether a process could receive it."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


class _Output(asyncio.Protocol):
    """Keeps the beginning and the end of the output."""

    def __init__(self, bytes_max: int) -> None:
        self._half = bytes_max // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0
        self.ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        """Keep the data, and drop from the middle what exceeds the limit."""
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        excess = max(0, len(self._tail) - self._half)
        del self._tail[:excess]
        self._dropped += excess

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - a terminal ends with an error
        """Note the end of the output."""
        self.ended.set()

    @property
    def text(self) -> str:
        """The output as text, with a note in place of a dropped middle."""
        if not self._dropped:
            return (self._head + self._tail).decode("utf-8", "replace")
        note = f"\n\n[{self._dropped} bytes of the output are left out here.]\n\n"
        return self._head.decode("utf-8", "replace") + note + self._tail.decode("utf-8", "replace")
