"""A pseudo-terminal with somebody in front of it, who types and reads."""

import asyncio
import codecs
import fcntl
import os
import pty
import re
import signal
import struct
import sys
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 30.0
ROWS, COLUMNS = 40, 100
CTRL_C, CTRL_D, ALT_ENTER, ENTER = "\x03", "\x04", "\x1b\r", "\r"

_ESCAPE = re.compile(r"\x1b(?:\[([0-?]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_=>])")
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*)?$")


class Paper:
    """What stands on a terminal, as if it had scrolled on paper: nothing that was on it is gone."""

    def __init__(self) -> None:
        self._lines: list[list[str]] = [[]]
        self._row = self._column = 0
        self._pending = ""
        self.asked = 0
        """How often a program asked where the cursor is."""

    @property
    def text(self) -> str:
        """What can be read on it."""
        return "\n".join("".join(line).rstrip() for line in self._lines)

    @property
    def row(self) -> int:
        """Where the cursor is on a screen that shows the end of the paper."""
        return min(self._row + 1, ROWS - 12)

    def write(self, text: str) -> None:
        """Let a program write."""
        text = self._pending + text
        cut = _UNFINISHED.search(text)
        text, self._pending = (text[: cut.start()], cut[0]) if cut else (text, "")
        at = 0
        for escape in _ESCAPE.finditer(text):
            self._print(text[at : escape.start()])
            self._move(escape[1] or "", escape[2] or "")
            at = escape.end()
        self._print(text[at:])

    def _print(self, text: str) -> None:
        for character in text:
            if character == "\r":
                self._column = 0
            elif character == "\n":
                self._down(1)
            elif character == "\b":
                self._column = max(0, self._column - 1)
            elif character >= " ":
                line = self._lines[self._row]
                line += " " * (self._column + 1 - len(line))
                line[self._column] = character
                self._column += 1

    def _down(self, rows: int) -> None:
        self._row += rows
        self._lines += [[] for _ in range(self._row + 1 - len(self._lines))]

    def _move(self, given: str, command: str) -> None:
        number = int(given) if given.isdigit() else 1
        match command:
            case "A":
                self._row = max(0, self._row - number)
            case "B":
                self._down(number)
            case "C":
                self._column += number
            case "D":
                self._column = max(0, self._column - number)
            case "J":
                del self._lines[self._row + 1 :]
                del self._lines[self._row][self._column :]
            case "K":
                del self._lines[self._row][self._column :]
            case "n":
                self.asked += 1
            case _:
                pass


class Person:
    """Types into one end of a terminal and reads what appears on it."""

    def __init__(self, master: int) -> None:
        self._master = master
        self._paper = Paper()
        self._answered = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._came = asyncio.Event()
        asyncio.get_running_loop().add_reader(master, self._read)

    @property
    def text(self) -> str:
        """What can be read on the terminal, from the beginning."""
        return self._paper.text

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._master, text.encode())

    def enter(self, text: str) -> None:
        """Type a line and send it."""
        self.type(text + ENTER)

    async def sees(self, text: str, *, times: int = 1) -> None:
        """Wait until something has appeared so often."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while self.text.count(text) < times:
                    self._came.clear()
                    await self._came.wait()
        except TimeoutError:
            raise AssertionError(f"{text!r} did not appear {times} times in:\n{self.text}") from None

    def leave(self) -> None:
        """Look no more."""
        asyncio.get_running_loop().remove_reader(self._master)

    def _read(self) -> None:
        try:
            came = os.read(self._master, 65_536)
        except OSError:  # on Linux the end of a terminal whose other end is closed
            came = b""
        if not came:
            self.leave()
        self._paper.write(self._decoder.decode(came))
        while self._answered < self._paper.asked:
            # As every terminal does; a status line is drawn only where the height is known.
            self._answered += 1
            self.type(f"\x1b[{self._paper.row};1R")
        self._came.set()


def open_terminal() -> tuple[int, int]:
    """Return both ends of a terminal of a usual size."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    return master, slave


def environment(**more: str) -> dict[str, str]:
    """What a process of ours is started with."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        "TERM": "xterm-256color",
        **more,
    }


def command(task: str, *arguments: str) -> list[str]:
    """What starts a process of ours."""
    return [sys.executable, "-m", "tests.cli.runner", task, *arguments]


class Seat(Person):
    """Somebody in front of a chat that runs in a process of its own."""

    def __init__(self, master: int, process: asyncio.subprocess.Process) -> None:
        super().__init__(master)
        self.process = process
        self.has_terminal = True

    def hang_up(self) -> None:
        """Take the terminal away, as a closed window or a lost connection does."""
        self.process.send_signal(signal.SIGHUP)
        self.leave()
        os.close(self._master)
        self.has_terminal = False

    async def ended(self) -> int:
        """Wait for the chat's exit code."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.process.wait()


@asynccontextmanager
async def seat(*arguments: str, **more: str) -> AsyncIterator[Seat]:
    """Sit down at a chat; whatever happens, its process ends with the block."""
    master, slave = open_terminal()
    process = await asyncio.create_subprocess_exec(
        *command("chat", *arguments),
        cwd=ROOT,
        env=environment(**more),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    person = Seat(master, process)
    try:
        yield person
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        if person.has_terminal:
            person.leave()
            os.close(master)


@asynccontextmanager
async def gateway(*arguments: str) -> AsyncIterator[None]:
    """Run a gateway in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        *command("serve", *arguments),
        cwd=ROOT,
        env=environment(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        assert await process.stdout.readline() == b"ready\n"
        yield
    finally:
        process.stdin.close()
        await process.wait()


async def run(task: str, *arguments: str, given: str = "", **more: str) -> tuple[int | None, str, str]:
    """Run a process without a terminal to its end; return its exit code and what it wrote."""
    process = await asyncio.create_subprocess_exec(
        *command(task, *arguments),
        cwd=ROOT,
        env=environment(**more),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE_SECONDS):
        out, err = await process.communicate(given.encode())
    return process.returncode, out.decode(), err.decode()
