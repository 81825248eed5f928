"""Input and output of the terminal chat: the contract of an input, standard input that is not a terminal, and modes.

An input reads the next message, and writes text without disturbing what the person is typing.
"""

import asyncio
import os
import sys
import termios
import threading
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol, TextIO


class Input(Protocol):
    """The input and output of one terminal. A class that inherits it has no status line and no unfinished text."""

    async def read(self) -> str | None:
        """Return the next message, or None at the end."""

    def refresh(self) -> None:
        """Draw the status line again."""
        return

    def redraw(self) -> None:
        """Draw the unfinished text again, now or in a moment."""
        return

    def write(self, text: str) -> None:
        """Show a text without disturbing the typing."""

    async def written(self) -> None:
        """Return when all text is written."""
        return


class LineInput(Input):
    """Standard input that is not a terminal: every line is a message."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._stream = sys.stdin if stream is None else stream
        # A daemon thread: a blocking read of standard input cannot be interrupted.
        threading.Thread(target=self._read_all, name="keryx-stdin", daemon=True).start()

    async def read(self) -> str | None:
        """Return the next line, or None at the end."""
        return await self._lines.get()

    def write(self, text: str) -> None:
        """Write a text at once."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def _read_all(self) -> None:
        with suppress(RuntimeError):  # the loop is closed, and the chat has ended
            for line in self._stream:
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line.rstrip("\n"))
            self._loop.call_soon_threadsafe(self._lines.put_nowait, None)


@contextmanager
def quiet_keys() -> Iterator[None]:
    """During the block, queue every key until it is read: without echo, and Ctrl-D is a key like any other."""
    before = termios.tcgetattr(sys.stdin)
    changed = termios.tcgetattr(sys.stdin)
    changed[tty.IFLAG] &= ~termios.ICRNL
    changed[tty.LFLAG] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(sys.stdin, termios.TCSANOW, changed)
    try:
        yield
    finally:
        with suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                drop_output(stream)


def drop_output(stream: TextIO) -> None:
    """Discard a stream's output and its buffer, so that the flush at the exit of the process does not fail."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
