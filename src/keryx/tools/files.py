"""Tools that read and change text files in the workspace.

A file is replaced whole or not at all, and keeps its mode. Whatever touches the disk runs in a thread.
"""

import asyncio
import hashlib
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from keryx.domain.json_value import JsonValue
from keryx.domain.toolset import FILES
from keryx.domain.turn import StepEffect
from keryx.tools.plain import Arguments, Parameter, PlainTool
from keryx.tools.tool import Tool, ToolFailed, Use
from keryx.tools.workspace import Workspace, Workspaces

READ_BYTES_MAX: Final = 50_000_000
EDIT_BYTES_MAX: Final = 5_000_000
LINES_DEFAULT: Final = 500
LINES_MAX: Final = 5_000
LINE_CHARACTERS_MAX: Final = 2_000
SHOWN_CHARACTERS_MAX: Final = 15_000
"""With its heading a window is shorter than what is kept apart as a long result: a file is read on in itself."""
_SNIFFED_BYTES: Final = 8_192

_PATH: Final = Parameter(help="The file, from the workspace on", required=True)


def file_tools(workspaces: Workspaces) -> Sequence[Tool]:
    """Return the tools of this module."""
    return [ReadFile(workspaces), WriteFile(workspaces), EditFile(workspaces)]


class _FileTool(PlainTool):
    """A tool that works on one file."""

    toolset = FILES

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces

    async def work(self, use: Use, given: Arguments) -> JsonValue:
        """Do it in a thread."""
        return await asyncio.to_thread(self._do, use, given)

    def _do(self, use: Use, given: Arguments) -> str:
        workspace = self._workspaces.of(use)
        path = workspace.inside(given.text("path"))
        try:
            return self.act(workspace, path, use, given)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ToolFailed(f"{workspace.shown(path)!r}: that did not work: {reason}.") from error

    def act(self, workspace: Workspace, path: Path, use: Use, given: Arguments) -> str:
        """Do it and return what is told."""
        raise NotImplementedError


class ReadFile(_FileTool):
    """Shows a window of a text file."""

    name = "read_file"
    description = "Read a text file of the workspace, or some lines of it; it says how many lines there are."
    parameters = {  # noqa: RUF012 - never changed
        "path": _PATH,
        "first_line": Parameter(kind="integer", help="The first line to read, counted from 1", low=1),
        "lines": Parameter(
            kind="integer", help=f"How many lines; {LINES_DEFAULT} where not said", low=1, high=LINES_MAX
        ),
    }

    def act(self, workspace: Workspace, path: Path, use: Use, given: Arguments) -> str:  # noqa: ARG002
        """Return the lines under a heading that says which they are."""
        name = workspace.shown(path)
        _check_file(path, name, bytes_max=READ_BYTES_MAX)
        first, wanted = given.whole("first_line", 1), given.whole("lines", LINES_DEFAULT)
        shown, total = _window(path, name, first=first, wanted=wanted)
        if not total:
            return f"{name} is empty."
        if not shown:
            raise ToolFailed(f"{name!r} has {total} lines; there is no line {first}.")
        last = first + len(shown) - 1
        more = f" Read on with first_line {last + 1}." if last < total else ""
        return f"{name}, lines {first} to {last} of {total}.{more}\n" + "\n".join(shown)


class WriteFile(_FileTool):
    """Puts a text in the place of a file."""

    name = "write_file"
    description = "Write a text file in the workspace: a new one, or in the place of all that one held."
    effect: StepEffect = "idempotent"
    parameters = {  # noqa: RUF012 - never changed
        "path": _PATH,
        "content": Parameter(help="Everything the file will hold", required=True, may_be_empty=True),
    }

    def act(self, workspace: Workspace, path: Path, use: Use, given: Arguments) -> str:
        """Write it and return how much it was."""
        name = workspace.shown(path)
        _check_not_git(name)
        if path.exists():
            _check_file(path, name, bytes_max=None)
        data = _encoded(given.text("content"))
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, data, key=use.key)
        return f"{name} is written, {len(data)} bytes."


class EditFile(_FileTool):
    """Replaces an exact text in a file.

    Of effect ``once``: whether a replacement was made cannot be told from the file afterwards, because the new text may
    hold the old one. After a crash the model is told that nobody knows, and can read the file.
    """

    name = "edit_file"
    description = (
        "Replace a text in a file of the workspace. The old text must stand there exactly so, and only once unless "
        "all are to be replaced; take as many lines around it as make it unique."
    )
    effect: StepEffect = "once"
    parameters = {  # noqa: RUF012 - never changed
        "path": _PATH,
        "old": Parameter(help="The text as it stands in the file", required=True, may_be_empty=True),
        "new": Parameter(help="What stands there afterwards", required=True, may_be_empty=True),
        "all": Parameter(kind="boolean", help="Whether to replace it wherever it stands"),
    }

    def act(self, workspace: Workspace, path: Path, use: Use, given: Arguments) -> str:
        """Replace it and return how often."""
        name = workspace.shown(path)
        old, new = given.text("old"), given.text("new")
        if not old:
            raise ToolFailed("'old' is empty; to write a whole file there is write_file.")
        if old == new:
            raise ToolFailed("'old' and 'new' are the same; nothing would change.")
        _check_not_git(name)
        _check_file(path, name, bytes_max=EDIT_BYTES_MAX)
        try:
            text = path.read_bytes().decode()
        except UnicodeDecodeError:
            raise ToolFailed(f"{name!r} is not UTF-8 text; it can only be changed in the terminal.") from None
        if old not in text and "\r\n" in text:
            old, new = _with_crlf(old), _with_crlf(new)
        count = text.count(old)
        if count == 0:
            raise ToolFailed(f"'old' does not stand in {name!r}, not exactly so; read the file again.")
        if count > 1 and not given.flag("all"):
            raise ToolFailed(
                f"'old' stands {count} times in {name!r}; take more lines around it, or set 'all'."
            )
        _replace(path, _encoded(text.replace(old, new)), key=use.key)
        return f"{name}: replaced {'once' if count == 1 else f'{count} times'}."


def _check_not_git(name: str) -> None:
    """Raise ``ToolFailed`` for git's own files: they say which programs git runs."""
    if any(part.casefold() == ".git" for part in Path(name).parts):
        raise ToolFailed(f"{name!r} is one of git's own files; only git changes them, in the terminal.")


def _check_file(path: Path, name: str, *, bytes_max: int | None) -> None:
    """Raise ``ToolFailed`` unless it is an ordinary file that is not too large; a pipe would never end."""
    try:
        found = path.stat()
    except FileNotFoundError:
        raise ToolFailed(f"There is no file {name!r}; list_files shows what there is.") from None
    if stat.S_ISDIR(found.st_mode):
        raise ToolFailed(f"{name!r} is a folder; list_files shows what is in it.")
    if not stat.S_ISREG(found.st_mode):
        raise ToolFailed(f"{name!r} is no ordinary file.")
    if bytes_max is not None and found.st_size > bytes_max:
        raise ToolFailed(
            f"{name!r} has {found.st_size} bytes, more than the {bytes_max} that can be handled."
        )


def _window(path: Path, name: str, *, first: int, wanted: int) -> tuple[list[str], int]:
    """Return the wanted lines, as many as are shown at once, and how many lines there are."""
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
            text = _shown_line(line.decode("utf-8", "replace").rstrip("\r\n"))
            room -= len(text) + 1
            if room > 0 or not shown:
                shown.append(text)
    return shown, total


def _shown_line(text: str) -> str:
    left_out = len(text) - LINE_CHARACTERS_MAX
    return text if left_out <= 0 else f"{text[:LINE_CHARACTERS_MAX]} [{left_out} characters more]"


def _with_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ToolFailed("The text holds half a character (a lone surrogate); files are UTF-8.") from None


def _replace(path: Path, data: bytes, *, key: str) -> None:
    """Put ``data`` in the place of a file, whole or not at all; a new file gets the mode any program's would."""
    # Named after the call: run again after a crash, it finds what it left.
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
