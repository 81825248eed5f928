"""The look of a terminal: answers as Markdown, the rest in a line or two; plain text if output is not a terminal.

Finished text is written once and stays. Unfinished text is drawn below it for as long as it grows.

All text comes from people, models and tools. None of it is interpreted as markup of the console, and no control
character in it reaches the terminal.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

from rich.console import Console, RenderableType
from rich.markdown import Markdown
from rich.text import Text

from keryx.core.conversations.rules.message import MediaPart, Part, preview_of, text_of
from keryx.platforms.terminal.answer_text import last_lines

_FENCE: Final = re.compile(
    r"( {0,3}(?:`{3,}|~{3,}).*?(?:^ {0,3}(?:`{3,}|~{3,})[ \t]*$|\Z))", re.MULTILINE | re.DOTALL
)
_PADDING: Final = re.compile(" +$", re.MULTILINE)
"""Rich pads Markdown to the width. The padding would be copied, and would wrap in a narrower window."""
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def harmless(text: str) -> str:
    """Return a text without the characters that control the terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def keep_breaks(text: str) -> str:
    """Return Markdown that keeps every line break: people and tools write lists without list marks."""
    pieces = _FENCE.split(text)
    pieces[::2] = [re.sub(r"(?<=\S)\n(?=\S)", "  \n", piece) for piece in pieces[::2]]
    return "".join(pieces)


def whole_text(parts: tuple[Part, ...]) -> str:
    """Return the text of the parts, with a word for each part that is not text."""
    lines = [text_of(parts), *(preview_of((part,)) for part in parts if isinstance(part, MediaPart))]
    return "\n".join(line for line in lines if line)


class Screen:
    """Shows the lines of a conversation."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._write: Callable[[str], None] | None = None
        self._redraw: Callable[[], None] | None = None

    def write_with(self, write: Callable[[str], None], *, redraw: Callable[[], None]) -> None:
        """Write and draw through these functions of the terminal's input."""
        self._write, self._redraw = write, redraw

    def redraw(self) -> None:
        """Draw the unfinished text again."""
        if self._redraw is not None:
            self._redraw()

    def draw(self, text: str, calls: Sequence[str], *, columns: int, rows: int) -> list[str]:
        """Return the last lines, at most ``rows``, of an answer's unfinished block and of the running calls.

        They look as ``answer`` and ``call`` show them when they are finished.
        """
        if rows < 1:
            return []
        with self._console.capture() as drawn:
            if text.strip():
                piece = Markdown(keep_breaks(harmless(last_lines(text, rows))), hyperlinks=False)
                self._console.print(piece, "", sep="\n", width=columns)
            for call in calls[-rows:]:
                self._console.print(_call_line(call, "…", columns), width=columns)
        return _PADDING.sub("", drawn.get()).splitlines()[-rows:]

    def greet(self, agent_name: str) -> None:
        """Show the name of the agent and the keys, in two lines."""
        self._line(f"{agent_name} answers here. /help lists the commands.", style="bold")
        keys = "Enter sends, Alt-Enter starts a line, Ctrl-C stops an answer, Ctrl-D leaves."
        self._line(keys if self._console.is_terminal else "Every line is a message; the end of input leaves.")

    def answer(self, text: str) -> None:
        """Show a block of an answer."""
        if not self._console.is_terminal:
            self._print(Text(harmless(text)), "")
            return
        self._print(Markdown(keep_breaks(harmless(text)), hyperlinks=False), "")

    def call(self, what: str, end: str) -> None:
        """Show a call and its outcome in a line, if the output is a terminal."""
        if self._console.is_terminal:
            self._print(_call_line(what, f"({end})" if end else "", self._console.width))

    def show_text(self, text: str) -> None:
        """Show a text of Keryx itself, without Markdown."""
        self._line(text)

    def received(self, name: str, text: str) -> None:
        """Show a message that arrived in this conversation from elsewhere."""
        self._print(Text(f"{harmless(name)}: ", style="bold cyan").append(harmless(text), style="default"))

    def note(self, text: str) -> None:
        """Show a note that is not part of the conversation."""
        self._line(text, style="dim")

    def _line(self, text: str, *, style: str = "") -> None:
        self._print(Text(harmless(text), style=style))

    def _print(self, *shown: RenderableType) -> None:
        soft_wrap = not self._console.is_terminal
        if self._write is None:
            self._console.print(*shown, sep="\n", soft_wrap=soft_wrap)
            return
        with self._console.capture() as written:
            self._console.print(*shown, sep="\n", soft_wrap=soft_wrap)
        self._write(_PADDING.sub("", written.get()) if self._console.is_terminal else written.get())


def _call_line(what: str, end: str, columns: int) -> Text:
    """Return a line that is no wider than the screen and keeps its end."""
    line = Text(harmless(what), style="dim", no_wrap=True)
    line.truncate(max(1, columns - len(end) - 1), overflow="ellipsis")
    return line.append(f" {end}" if end else "")
