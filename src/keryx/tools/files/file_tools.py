"""``read_file``, ``write_file`` and ``edit_file``: the tools that work on one file.

Disk access runs in a thread. A tool gets a path only after the workspace has accepted it. A file is written whole or
not at all, and an existing file keeps its mode. The effect of an edit is ``once``: the new text may contain the old
one, so the file does not show afterwards whether a replacement was made.
"""

import asyncio
import hashlib
import os
import stat
from abc import abstractmethod
from pathlib import Path
from typing import Final

from keryx.core.people.rules.toolset import FILES
from keryx.core.values.json_value import JsonValue
from keryx.core.values.turn_states import StepEffect
from keryx.errors import ToolFailed
from keryx.tools.base_tool import Arguments, BaseTool, Parameter
from keryx.tools.tool import ToolCall
from keryx.tools.workspace import Workspace, Workspaces

PATH: Final = Parameter(help="The file, from the workspace on", required=True)
EDIT_BYTES_MAX: Final = 5_000_000
READ_BYTES_MAX: Final = 50_000_000
LINES_DEFAULT: Final = 500
LINES_MAX: Final = 5_000
LINE_CHARACTERS_MAX: Final = 2_000
SHOWN_CHARACTERS_MAX: Final = 15_000
"""With its heading, the text is shorter than a result that is stored apart: the model reads on in the file itself."""
_SNIFFED_BYTES: Final = 8_192


class FileTool(BaseTool):
    """A tool that works on one file."""

    toolset = FILES

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces

    async def work(self, call: ToolCall, given: Arguments) -> JsonValue:
        """Run the tool in a thread."""
        return await asyncio.to_thread(self._act, call, given)

    def _act(self, call: ToolCall, given: Arguments) -> str:
        workspace = self._workspaces.of(call)
        path = workspace.inside(given.text("path"))
        try:
            return self.act(workspace, path, call, given)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ToolFailed(f"{workspace.shown(path)!r}: that did not work: {reason}.") from error

    @abstractmethod
    def act(self, workspace: Workspace, path: Path, call: ToolCall, given: Arguments) -> str:
        """Work on the file and return the result."""


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
        _check_file(path, name, bytes_max=READ_BYTES_MAX)
        first, wanted = given.whole("first_line", 1), given.whole("lines", LINES_DEFAULT)
        shown, total = _read_lines(path, name, first=first, wanted=wanted)
        if not total:
            return f"{name} is empty."
        if not shown:
            raise ToolFailed(f"{name!r} has {total} lines; there is no line {first}.")
        last = first + len(shown) - 1
        more = f" Read on with first_line {last + 1}." if last < total else ""
        return f"{name}, lines {first} to {last} of {total}.{more}\n" + "\n".join(shown)


class WriteFile(FileTool):
    """Writes a new file, or replaces the whole content of an existing one."""

    name = "write_file"
    description = "Write a text file in the workspace: a new one, or the whole content of an existing one."
    effect: StepEffect = "idempotent"
    parameters = {  # noqa: RUF012 - never changed
        "path": PATH,
        "content": Parameter(help="The whole content of the file", required=True, may_be_empty=True),
    }

    def act(self, workspace: Workspace, path: Path, call: ToolCall, given: Arguments) -> str:
        """Write the file and return its size."""
        name = workspace.shown(path)
        _check_not_git(name)
        if path.exists():
            _check_file(path, name, bytes_max=None)
        data = _encode(given.text("content"))
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace_file(path, data, key=call.key)
        return f"{name} is written, {len(data)} bytes."


class EditFile(FileTool):
    """Replaces an exact text in a file."""

    name = "edit_file"
    description = (
        "Replace a text in a file of the workspace. The file must contain the old text exactly, and only once unless "
        "all are to be replaced; include as many lines around it as make it unique."
    )
    effect: StepEffect = "once"
    parameters = {  # noqa: RUF012 - never changed
        "path": PATH,
        "old": Parameter(help="The text, exactly as in the file", required=True, may_be_empty=True),
        "new": Parameter(help="The text in its place", required=True, may_be_empty=True),
        "all": Parameter(kind="boolean", help="Whether to replace every occurrence"),
    }

    def act(self, workspace: Workspace, path: Path, call: ToolCall, given: Arguments) -> str:
        """Replace the text and return how often it was found."""
        name = workspace.shown(path)
        old, new = given.text("old"), given.text("new")
        if not old:
            raise ToolFailed("'old' is empty; to write a whole file, use write_file.")
        if old == new:
            raise ToolFailed("'old' and 'new' are the same; nothing would change.")
        _check_not_git(name)
        _check_file(path, name, bytes_max=EDIT_BYTES_MAX)
        try:
            text = path.read_bytes().decode()
        except UnicodeDecodeError:
            raise ToolFailed(f"{name!r} is not UTF-8 text; only the terminal can change it.") from None
        if old not in text and "\r\n" in text:
            old, new = (each.replace("\r\n", "\n").replace("\n", "\r\n") for each in (old, new))
        count = text.count(old)
        if count == 0:
            raise ToolFailed(f"{name!r} does not contain 'old' exactly so; read the file again.")
        if count > 1 and not given.flag("all"):
            raise ToolFailed(
                f"{name!r} contains 'old' {count} times; take more lines around it, or set 'all'."
            )
        _replace_file(path, _encode(text.replace(old, new)), key=call.key)
        return f"{name}: replaced {'once' if count == 1 else f'{count} times'}."


def _check_file(path: Path, name: str, *, bytes_max: int | None) -> None:
    """Raise ``ToolFailed`` unless it is an ordinary file that is not too large; reading a pipe would never end."""
    try:
        found = path.stat()
    except FileNotFoundError:
        raise ToolFailed(f"There is no file {name!r}; list_files shows what there is.") from None
    if stat.S_ISDIR(found.st_mode):
        raise ToolFailed(f"{name!r} is a folder; list_files shows what is in it.")
    if not stat.S_ISREG(found.st_mode):
        raise ToolFailed(f"{name!r} is not an ordinary file.")
    if bytes_max is not None and found.st_size > bytes_max:
        raise ToolFailed(f"{name!r} has {found.st_size} bytes; the limit is {bytes_max}.")


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


def _check_not_git(name: str) -> None:
    """Raise ``ToolFailed`` for git's own files: they say which programs git runs."""
    if any(part.casefold() == ".git" for part in Path(name).parts):
        raise ToolFailed(f"{name!r} is one of git's own files; only git changes them, in the terminal.")


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ToolFailed("The text holds half a character (a lone surrogate); files are UTF-8.") from None


def _replace_file(path: Path, data: bytes, *, key: str) -> None:
    """Replace the content of a file; a new file gets the mode that any program would give it."""
    # Named after the call: if the call runs again after a crash, it finds the file it left behind.
    temporary = path.with_name(f".keryx-{hashlib.sha256(key.encode()).hexdigest()[:16]}.tmp")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if path.exists():
                os.fchmod(descriptor, stat.S_IMODE(path.stat().st_mode))
            file.flush()
            os.fsync(descriptor)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
