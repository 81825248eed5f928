"""The base class of the tools that work on one file.

Disk access runs in a thread. A tool gets a path only after the workspace has accepted it.
"""

import asyncio
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
