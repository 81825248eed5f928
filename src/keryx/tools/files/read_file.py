"""``read_file``: show some lines of a text file."""

from pathlib import Path
from typing import Final

from keryx.errors import ToolFailed
from keryx.tools.base_tool import Arguments, Parameter
from keryx.tools.files.file_tool import PATH, FileTool, check_file
from keryx.tools.tool import ToolCall
from keryx.tools.workspace import Workspace

READ_BYTES_MAX: Final = 50_000_000
LINES_DEFAULT: Final = 500
LINES_MAX: Final = 5_000
LINE_CHARACTERS_MAX: Final = 2_000
SHOWN_CHARACTERS_MAX: Final = 15_000
"""With its heading, the text is shorter than a result that is stored apart: the model reads on in the file itself."""
_SNIFFED_BYTES: Final = 8_192


class ReadFile(FileTool):
    """Shows some lines of a text file."""

    name = "read_file"
    description = "Read a text file of the workspace, or some lines of it; it says how many lines there are."
    parameters = {  # noqa: RUF012 - never changed
        "path": PATH,
        "first_line": Parameter(kind="integer", help="The first line to read, counted from 1", low=1),
        "lines": Parameter(
            kind="integer", help=f"How many lines; {LINES_DEFAULT} where not said", low=1, high=LINES_MAX
        ),
    }

    def act(self, workspace: Workspace, path: Path, call: ToolCall, given: Arguments) -> str:  # noqa: ARG002
        """Return the lines below a heading with their numbers."""
        name = workspace.shown(path)
        check_file(path, name, bytes_max=READ_BYTES_MAX)
        first, wanted = given.whole("first_line", 1), given.whole("lines", LINES_DEFAULT)
        shown, total = _read_lines(path, name, first=first, wanted=wanted)
        if not total:
            return f"{name} is empty."
        if not shown:
            raise ToolFailed(f"{name!r} has {total} lines; there is no line {first}.")
        last = first + len(shown) - 1
        more = f" Read on with first_line {last + 1}." if last < total else ""
        return f"{name}, lines {first} to {last} of {total}.{more}\n" + "\n".join(shown)


def _read_lines(path: Path, name: str, *, first: int, wanted: int) -> tuple[list[str], int]:
    """Return as many of the wanted lines as one result may hold, and the number of lines in the file."""
    shown: list[str] = []
    room, total = SHOWN_CHARACTERS_MAX, 0
    with path.open("rb") as file:
        if b"\0" in file.read(_SNIFFED_BYTES):
            size = path.stat().st_size
            raise ToolFailed(f"{name!r} is binary ({size} bytes); only text can be read.")
        file.seek(0)
        for total, line in enumerate(file, start=1):
            if room <= 0 or not first <= total < first + wanted:
                continue
            text = _cut_line(line.decode("utf-8", "replace").rstrip("\r\n"))
            room -= len(text) + 1
            if room > 0 or not shown:
                shown.append(text)
    return shown, total


def _cut_line(text: str) -> str:
    left_out = len(text) - LINE_CHARACTERS_MAX
    return text if left_out <= 0 else f"{text[:LINE_CHARACTERS_MAX]} [{left_out} characters more]"
