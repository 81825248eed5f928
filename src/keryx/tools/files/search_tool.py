"""The base class of the tools that search a folder of the workspace.

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
from keryx.tools.workspace import Workspace, Workspaces

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

    def folder(self, call: ToolCall, given: Arguments) -> tuple[Workspace, Path]:
        """Return the workspace and the folder in it; reads the disk."""
        workspace = self._workspaces.of(call)
        return workspace, workspace.folder(given.text("folder"))

    async def search(
        self, workspace: Workspace, folder: Path, given: Arguments, *, pattern: str | None, hits_max: int
    ) -> tuple[list[str], str]:
        """Return the hits, and a note if the search is not complete; without a pattern, files are the hits."""
        request = search_files.SearchRequest(
            root=str(workspace.root),
            folder=str(folder),
            kept_out=[str(each) for each in workspace.kept_out],
            glob=given.text("glob"),
            pattern=pattern,
            is_regex=given.flag("regex"),
            ignore_case=given.flag("ignore_case"),
            hits_max=hits_max,
        )
        ran = await run_program(
            Program(
                arguments=[sys.executable, "-I", "-S", search_files.__file__],
                folder=workspace.root,
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
            note = (
                f"This is not all: the search was ended after {self._seconds:g} s. Look in a smaller folder."
            )
            return found, note
        assert ran.exit_code == 0, f"the program said: {ran.output}"
        return found, f"There is more than these {len(found)}; look for less." if (
            "more",
            "",
        ) in lines else ""


def _read(output: str) -> Iterator[tuple[str, str]]:
    for line in output.splitlines():
        with suppress(ValueError):  # the last line of a program that was ended while it wrote
            kind, text = json.loads(line)
            yield kind, text
