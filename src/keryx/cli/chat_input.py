"""What a person types: at a terminal with history, several lines and completion; elsewhere line by line.

Both read the next message, or None at the end; neither knows what becomes of it.
"""

import asyncio
import os
import sys
import termios
import threading
import tty
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Final, Protocol, TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.utils import get_cwidth

from keryx.domain.command import COMMANDS
from keryx.domain.graphemes import cut

PROMPT: Final = "> "
MENU_LINES: Final = 6
USAGE_COLUMNS: Final = 36
"""A longer one would leave no room for the help beside it, in every line; `/help` shows it whole."""
STATUS_LINES: Final = 2
"""What the status may take at the bottom."""
DRAW_SECONDS: Final = 0.1
"""How often what grows above the prompt is drawn: faster than anybody reads, and what is typed is not held up."""


class Input(Protocol):
    """Where messages come from."""

    async def read(self) -> str | None:
        """Return the next message, or None at the end."""

    def refresh(self) -> None:
        """Show the status as it is now."""

    def redraw(self) -> None:
        """Show what is not finished as it is now, or in a moment."""

    def write(self, text: str) -> None:
        """Show a text where it does not disturb the typing."""

    async def written(self) -> None:
        """Return when everything is shown."""


class CommandCompleter(Completer):
    """Completes the name of a command, with its help beside it."""

    def get_completions(
        self,
        document: Document,
        complete_event: CompleteEvent,  # noqa: ARG002 - the shape it is called in
    ) -> Iterable[Completion]:
        """Yield the commands that begin with what is typed."""
        typed = document.text
        if not typed.startswith("/") or document.cursor_position != len(typed):
            return
        for command in COMMANDS:
            for name in (command.name, *command.aliases):
                if f"/{name}".startswith(typed.lower()):
                    yield Completion(
                        f"/{name}",
                        start_position=-len(typed),
                        display=cut(f"/{name} {command.arguments}".rstrip(), USAGE_COLUMNS),
                        display_meta=command.help,
                    )


class Keyboard:
    """A person at a terminal; ``interrupt`` is asked at Ctrl-C whether that stopped something.

    ``above`` gives the lines that are drawn above what is typed, for so many columns and at most so many rows. They are
    a part of the prompt and never of what scrolls away: what is written takes their place in the same moment.
    """

    def __init__(
        self,
        *,
        history: Path | None,
        status: Callable[[], str],
        interrupt: Callable[[], bool],
        above: Callable[[int, int], list[str]],
    ) -> None:
        self._texts: list[str] = []
        self._writing: asyncio.Task[None] | None = None
        self._above = above
        self._drawn: StyleAndTextTuples = []
        self._drawn_for: tuple[int, int] | None = None
        """The room there was for what is drawn; None when it is to be drawn anew."""
        self._drawing: asyncio.TimerHandle | None = None
        self._session: PromptSession[str] = PromptSession(
            self._prompt,
            history=_open_history(history),
            completer=CommandCompleter(),
            complete_while_typing=True,
            key_bindings=_bindings(interrupt),
            multiline=True,
            prompt_continuation="  ",
            bottom_toolbar=status,
            reserve_space_for_menu=MENU_LINES,
            input=_QuietInput(sys.stdin),
        )

    async def read(self) -> str | None:
        """Return what is typed until Enter, or None at Ctrl-D and where the terminal is gone."""
        try:
            return await self._session.prompt_async(handle_sigint=False, set_exception_handler=False)
        except (EOFError, OSError, termios.error):
            return None

    def refresh(self) -> None:
        """Draw the status line again."""
        self._session.app.invalidate()

    def redraw(self) -> None:
        """Draw what stands above the prompt anew, in a moment."""
        if self._drawing is None:
            self._drawing = asyncio.get_running_loop().call_later(DRAW_SECONDS, self._draw)

    def write(self, text: str) -> None:
        """Show a text above what is being typed, as soon as nothing else is drawn."""
        self._texts.append(text)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all())

    async def written(self) -> None:
        """Return when everything is shown."""
        if self._writing is not None:
            await self._writing

    async def _write_all(self) -> None:
        with suppress(OSError):  # the terminal is gone
            while self._texts:
                await run_in_terminal(self._write_now)

    def _write_now(self) -> None:
        text = "".join(self._texts)
        self._texts.clear()
        self._drawn_for = None
        sys.stdout.write(text)
        sys.stdout.flush()

    def _draw(self) -> None:
        self._drawing = self._drawn_for = None
        self.refresh()

    def _prompt(self) -> StyleAndTextTuples:
        """Return what stands before what is typed; what grows is not left behind when it is sent."""
        if self._session.app.is_done:
            return [("", PROMPT)]
        size = self._session.app.output.get_size()
        typed = self._session.default_buffer.document.lines
        input_rows = sum(1 + (len(PROMPT) + get_cwidth(line)) // size.columns for line in typed)
        room = (size.columns, size.rows - max(MENU_LINES, input_rows) - STATUS_LINES)
        # What waits to be written may be what stood here: until it is, this stays.
        if room != self._drawn_for and not self._texts:
            lines = "".join(f"{line}\n" for line in self._above(*room))
            self._drawn, self._drawn_for = to_formatted_text(ANSI(lines)), room
        return [*self._drawn, ("", PROMPT)]


class Lines:
    """Standard input that is no terminal: every line is a message."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._stream = sys.stdin if stream is None else stream
        # Of its own and not waited for: nothing can end a read that waits for somebody else's words.
        threading.Thread(target=self._read_all, name="keryx-stdin", daemon=True).start()

    async def read(self) -> str | None:
        """Return the next line, or None at the end."""
        return await self._lines.get()

    def refresh(self) -> None:
        """There is no status line."""

    def redraw(self) -> None:
        """What is written stays as it is."""

    def write(self, text: str) -> None:
        """Write a text."""
        sys.stdout.write(text)
        sys.stdout.flush()

    async def written(self) -> None:
        """Everything is."""

    def _read_all(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody wants to know any more
            for line in self._stream:
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line.rstrip("\n"))
            self._loop.call_soon_threadsafe(self._lines.put_nowait, None)


@contextmanager
def quiet_keys() -> Iterator[None]:
    """Let every key wait until it is read, also while nobody reads: nothing is echoed, and Ctrl-D not swallowed."""
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
            _let_go(stream)


def _let_go(stream: TextIO) -> None:
    """See that nothing is left to be written, or that it goes nowhere: where it cannot be, the exit would fail."""
    try:
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class _QuietInput(Vt100Input):
    """Keys that are not echoed into what is written while somebody types."""

    def cooked_mode(self) -> AbstractContextManager[None]:
        """Stay as it is: what we write above the prompt asks for nothing."""
        return nullcontext()


def _open_history(path: Path | None) -> History:
    if path is None:
        return InMemoryHistory()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600)
    return FileHistory(str(path))


def _bindings(interrupt: Callable[[], bool]) -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter")
    def _(event: KeyPressEvent) -> None:
        """Send; a backslash at the end begins another line instead."""
        buffer = event.current_buffer
        if buffer.document.char_before_cursor == "\\":
            buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
        else:
            buffer.validate_and_handle()

    @bindings.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        """Begin another line."""
        event.current_buffer.newline(copy_margin=False)

    @bindings.add("c-c")
    def _(event: KeyPressEvent) -> None:
        """Stop what runs, else clear the line."""
        if not interrupt():
            event.current_buffer.reset()

    return bindings
