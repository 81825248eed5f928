"""A pseudo-terminal with a person who types and reads, and chats, gateways and programs in their own processes."""

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


class ScrollingScreen:
    """The text of a terminal with unlimited scrollback: no line is lost."""

    def __init__(self) -> None:
        self._lines: list[list[str]] = [[]]
        self._row = self._column = 0
        self._pending = ""
        self.asked = 0
        """How often a program asked for the position of the cursor."""

    @property
    def text(self) -> str:
        """All text, from the beginning."""
        return "\n".join("".join(line).rstrip() for line in self._lines)

    @property
    def row(self) -> int:
        """The row of the cursor on a screen that shows the end of the text."""
        return min(self._row + 1, ROWS - 12)

    def write(self, text: str) -> None:
        """Interpret the output of a program."""
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
    """Types into one end of a terminal and reads the output."""

    def __init__(self, master: int) -> None:
        self._master = master
        self._screen = ScrollingScreen()
        self._answered = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._came = asyncio.Event()
        asyncio.get_running_loop().add_reader(master, self._read)

    @property
    def text(self) -> str:
        """All text on the terminal, from the beginning."""
        return self._screen.text

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._master, text.encode())

    def enter(self, text: str) -> None:
        """Type a line and send it."""
        self.type(text + ENTER)

    async def sees(self, text: str, *, times: int = 1) -> None:
        """Wait until a text has appeared this many times."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while self.text.count(text) < times:
                    self._came.clear()
                    await self._came.wait()
        except TimeoutError:
            raise AssertionError(f"{text!r} did not appear {times} times in:\n{self.text}") from None

    def leave(self) -> None:
        """Stop reading."""
        asyncio.get_running_loop().remove_reader(self._master)

    def _read(self) -> None:
        try:
            came = os.read(self._master, 65_536)
        except OSError:  # on Linux the end of a terminal whose other end is closed
            came = b""
        if not came:
            self.leave()
        self._screen.write(self._decoder.decode(came))
        while self._answered < self._screen.asked:
            # Every terminal answers this query. Without the answer, no status line is drawn.
            self._answered += 1
            self.type(f"\x1b[{self._screen.row};1R")
        self._came.set()


def open_terminal() -> tuple[int, int]:
    """Return both ends of a terminal of a usual size."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    return master, slave


def environment(**more: str) -> dict[str, str]:
    """Return the environment for a process of Keryx."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        "TERM": "xterm-256color",
        **more,
    }


def command(task: str, *arguments: str) -> list[str]:
    """Return the command line that starts a process of Keryx."""
    return [sys.executable, "-m", "tests.cli.runner", task, *arguments]


class ChatProcess(Person):
    """A person at a chat that runs in its own process."""

    def __init__(self, master: int, process: asyncio.subprocess.Process) -> None:
        super().__init__(master)
        self.process = process
        self.has_terminal = True

    def hang_up(self) -> None:
        """Close the terminal, like a closed window or a lost connection."""
        self.process.send_signal(signal.SIGHUP)
        self.leave()
        os.close(self._master)
        self.has_terminal = False

    async def ended(self) -> int:
        """Wait for the chat's exit code."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.process.wait()


@asynccontextmanager
async def chat_process(*arguments: str, **more: str) -> AsyncIterator[ChatProcess]:
    """Start a chat at a terminal in its own process, which ends with the block."""
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
    person = ChatProcess(master, process)
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
    """Run a gateway in its own process."""
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
    """Run a process without a terminal to its end; return its exit code and its output."""
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
