"""The contract of a terminal's input, and standard input that is not a terminal.

An input reads the next message, and writes text where it does not disturb the typing.
"""

import asyncio
import sys
import threading
from contextlib import suppress
from typing import Protocol, TextIO


class Input(Protocol):
    """The input and output of one terminal."""

    async def read(self) -> str | None:
        """Return the next message, or None at the end."""

    def refresh(self) -> None:
        """Draw the status line again."""

    def redraw(self) -> None:
        """Draw the unfinished text again, now or in a moment."""

    def write(self, text: str) -> None:
        """Show a text where it does not disturb the typing."""

    async def written(self) -> None:
        """Return when all text is written."""


class LineInput:
    """Standard input that is not a terminal: every line is a message."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._stream = sys.stdin if stream is None else stream
        # A daemon thread: nothing can end a blocking read of standard input.
        threading.Thread(target=self._read_all, name="keryx-stdin", daemon=True).start()

    async def read(self) -> str | None:
        """Return the next line, or None at the end."""
        return await self._lines.get()

    def refresh(self) -> None:
        """Do nothing: there is no status line."""

    def redraw(self) -> None:
        """Do nothing: unfinished text is not drawn."""

    def write(self, text: str) -> None:
        """Write a text."""
        sys.stdout.write(text)
        sys.stdout.flush()

    async def written(self) -> None:
        """Do nothing: ``write`` writes at once."""

    def _read_all(self) -> None:
        with suppress(RuntimeError):  # the loop is closed, and the chat has ended
            for line in self._stream:
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line.rstrip("\n"))
            self._loop.call_soon_threadsafe(self._lines.put_nowait, None)
