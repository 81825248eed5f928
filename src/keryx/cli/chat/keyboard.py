"""The input of a person at a terminal: history, several lines, completion of commands, and a status line."""

import asyncio
import sys
import termios
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.utils import get_cwidth

from keryx.commands.table import COMMANDS
from keryx.core.values.graphemes import cut

PROMPT: Final = "> "
MENU_LINES: Final = 6
USAGE_COLUMNS: Final = 36
"""The longest usage that leaves room for the help beside it; `/help` shows a longer one in full."""
STATUS_LINES: Final = 2
DRAW_SECONDS: Final = 0.1
"""How often the text above the prompt is drawn: faster than a person reads, without delaying the typing."""


class CommandCompleter(Completer):
    """Completes the name of a command, and shows its help."""

    def get_completions(
        self,
        document: Document,
        complete_event: CompleteEvent,  # noqa: ARG002 - the signature of a completer
    ) -> Iterable[Completion]:
        """Yield the commands that begin with the typed text."""
        typed = document.text
        if not typed.startswith("/") or document.cursor_position != len(typed):
            return
        for command in COMMANDS.commands:
            for name in (command.name, *command.aliases):
                if f"/{name}".startswith(typed.lower()):
                    yield Completion(
                        f"/{name}",
                        start_position=-len(typed),
                        display=cut(f"/{name} {command.arguments}".rstrip(), USAGE_COLUMNS),
                        display_meta=command.help,
                    )


class Keyboard:
    """The keyboard of a terminal. Ctrl-C calls ``interrupt``, which returns whether it stopped something.

    ``above`` returns the lines to draw above the prompt, for a number of columns and a maximum number of rows. The
    lines are part of the prompt and do not scroll away: written text replaces them at once.
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
        """The columns and rows for which the lines above were drawn; None to draw them again."""
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
        """Return the text typed until Enter, or None after Ctrl-D or if the terminal is gone."""
        try:
            return await self._session.prompt_async(handle_sigint=False, set_exception_handler=False)
        except (EOFError, OSError, termios.error):
            return None

    def refresh(self) -> None:
        """Draw the status line again."""
        self._session.app.invalidate()

    def redraw(self) -> None:
        """Draw the lines above the prompt again, in a moment."""
        if self._drawing is None:
            self._drawing = asyncio.get_running_loop().call_later(DRAW_SECONDS, self._draw)

    def write(self, text: str) -> None:
        """Write a text above the prompt when no other drawing is in progress."""
        self._texts.append(text)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all())

    async def written(self) -> None:
        """Return when all text is written."""
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
        """Return the lines above and the prompt; after Enter the prompt alone, so that no unfinished text stays."""
        if self._session.app.is_done:
            return [("", PROMPT)]
        size = self._session.app.output.get_size()
        typed = self._session.default_buffer.document.lines
        input_rows = sum(1 + (len(PROMPT) + get_cwidth(line)) // size.columns for line in typed)
        room = (size.columns, size.rows - max(MENU_LINES, input_rows) - STATUS_LINES)
        # Text that waits to be written may be the text drawn here. Until it is written, the drawn lines stay.
        if room != self._drawn_for and not self._texts:
            lines = "".join(f"{line}\n" for line in self._above(*room))
            self._drawn, self._drawn_for = to_formatted_text(ANSI(lines)), room
        return [*self._drawn, ("", PROMPT)]


class _QuietInput(Vt100Input):
    """An input that never echoes keys, so that they cannot mix with text written above the prompt."""

    def cooked_mode(self) -> AbstractContextManager[None]:
        """Keep the mode without echo while text is written."""
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
        """Send, or begin another line after a backslash."""
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
        """Stop the running turn, or else clear the line."""
        if not interrupt():
            event.current_buffer.reset()

    return bindings
