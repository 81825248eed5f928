"""The base class of the tools that search a folder.

The search runs in a process of its own, ``programs.search_files``. The process is ended at the time limit, and the
hits it found until then are the result.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from keryx.core.people.rules.toolset import FILES
from keryx.errors import ToolFailed
from keryx.subprocesses.run_program import Program, run_program
from keryx.tools.base_tool import Arguments, BaseTool, Parameter
from keryx.tools.programs import search_files
from keryx.tools.tool import ToolCall
from keryx.tools.workspace import Workspaces

SEARCH_SECONDS: Final = 20.0
OUTPUT_BYTES_MAX: Final = 20_000_000
"""More than the largest number of hits can be, so that none is dropped."""
FOLDER: Final = Parameter(help="The folder to look in, from the workspace on; else the workspace")


class SearchTool(BaseTool):
    """A tool that searches a folder for at most so many seconds."""

    toolset = FILES

    def __init__(self, workspaces: Workspaces, *, seconds: float = SEARCH_SECONDS) -> None:
        self._workspaces = workspaces
        self._seconds = seconds

    def folder(self, call: ToolCall, given: Arguments) -> tuple[Path, Path, list[str]]:
        """Return the workspace, the folder in it, and the folders that no tool may read; reads the disk."""
        workspace = self._workspaces.of(call)
        folder = workspace.inside(given.text("folder"))
        if not folder.is_dir():
            raise ToolFailed(f"There is no folder {given.text('folder')!r} in the workspace.")
        return workspace.root, folder, [str(each) for each in workspace.kept_out]

    async def search(self, request: search_files.SearchRequest) -> tuple[list[str], str]:
        """Return the hits, and a note if the search is not complete."""
        ran = await run_program(
            Program(
                arguments=[sys.executable, "-I", "-S", search_files.__file__],
                folder=Path(request["root"]),
                environment={},
                seconds=self._seconds,
                stdin=json.dumps(request).encode(),
                output_bytes_max=OUTPUT_BYTES_MAX,
            )
        )
        lines = list(_read(ran.output))
        for kind, text in lines:
            if kind == "bad":
                raise ToolFailed(f"The pattern is not a regular expression: {text}.")
        found = [text for kind, text in lines if kind == "hit"]
        if ran.exit_code is None:
            return (
                found,
                f"This is not all: the search was ended after {self._seconds:g} s. Look in a smaller folder.",
            )
        assert ran.exit_code == 0, f"the program said: {ran.output}"
        note = f"There is more than these {len(found)}; look for less." if ("more", "") in lines else ""
        return found, note


def _read(output: str) -> Iterator[tuple[str, str]]:
    for line in output.splitlines():
        with suppress(ValueError):  # the last line of a program that was ended while it wrote
            kind, text = json.loads(line)
            yield kind, text
