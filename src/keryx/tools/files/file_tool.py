"""The base class of the tools that work on one file.

Disk access runs in a thread. A tool gets a path only after the workspace has accepted it. A file is written whole or
not at all, and an existing file keeps its mode.
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
from keryx.errors import ToolFailed
from keryx.tools.base_tool import Arguments, BaseTool, Parameter
from keryx.tools.tool import ToolCall
from keryx.tools.workspace import Workspace, Workspaces

PATH: Final = Parameter(help="The file, from the workspace on", required=True)


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


def check_file(path: Path, name: str, *, bytes_max: int | None) -> None:
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


def check_not_git(name: str) -> None:
    """Raise ``ToolFailed`` for git's own files: they say which programs git runs."""
    if any(part.casefold() == ".git" for part in Path(name).parts):
        raise ToolFailed(f"{name!r} is one of git's own files; only git changes them, in the terminal.")


def encode(text: str) -> bytes:
    """Return a text as UTF-8, or raise ``ToolFailed``."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ToolFailed("The text holds half a character (a lone surrogate); files are UTF-8.") from None


def replace_file(path: Path, data: bytes, *, key: str) -> None:
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
