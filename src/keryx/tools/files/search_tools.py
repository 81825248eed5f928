"""``list_files`` and ``find_in_files``: search a folder of the workspace.

The search runs in a process of its own, ``programs.search_files``. The process is ended at the time limit, and the
hits it found until then are the result.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from keryx.core.people.rules.toolset import FILES
from keryx.core.values.json_value import JsonValue
from keryx.errors import ToolFailed
from keryx.subprocesses.run_program import Program, run_program
from keryx.tools.base_tool import Arguments, BaseTool, Parameter
from keryx.tools.programs import search_files
from keryx.tools.tool import ToolCall
from keryx.tools.workspace import Workspace, Workspaces

SEARCH_SECONDS: Final = 20.0
OUTPUT_BYTES_MAX: Final = 20_000_000
"""More than the largest number of hits can be, so that none is dropped."""
LISTED_MAX: Final = 500
HITS_MAX: Final = 200
PATTERN_CHARACTERS_MAX: Final = 1_000
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


class ListFiles(SearchTool):
    """Lists a folder, or the files whose names match a glob."""

    name = "list_files"
    description = (
        "List the files of the workspace: the entries of a folder or, with a glob such as '*.py' or "
        "'src/**/test_*.py', the files below it whose names match."
    )
    parameters = {  # noqa: RUF012 - never changed
        "folder": FOLDER,
        "glob": Parameter(help="The files to list, in any folder below; else only the entries of the folder"),
    }

    async def work(self, call: ToolCall, given: Arguments) -> JsonValue:
        """Return a line for each file."""
        workspace, folder = await asyncio.to_thread(self.folder, call, given)
        if given.text("glob"):
            found, note = await self.search(workspace, folder, given, pattern=None, hits_max=LISTED_MAX)
        else:
            found, note = await asyncio.to_thread(_entries, folder)
        shown = f"{workspace.shown(folder)} of {workspace.root}"
        heading = f"In {shown}:" if found else f"Nothing in {shown}."
        return "\n".join([heading, *found, *filter(None, [note])])


class FindInFiles(SearchTool):
    """Finds lines that contain a text or match a regular expression."""

    name = "find_in_files"
    description = (
        "Find lines in the text files of the workspace that contain a text, or match a regular expression (Python's). "
        "Binary files, files over 5 MB and .git are left out."
    )
    parameters = {  # noqa: RUF012 - never changed
        "pattern": Parameter(help="The text to look for", required=True),
        "regex": Parameter(
            kind="boolean", help="Whether it is a regular expression; else it is taken literally"
        ),
        "ignore_case": Parameter(kind="boolean", help="Whether capital and small letters are the same"),
        "folder": FOLDER,
        "glob": Parameter(help="The files to search, such as '*.py'; else all of them"),
    }

    async def work(self, call: ToolCall, given: Arguments) -> JsonValue:
        """Return each line with its file and its number."""
        pattern = given.text("pattern")
        if len(pattern) > PATTERN_CHARACTERS_MAX:
            raise ToolFailed(f"The pattern is too long; give at most {PATTERN_CHARACTERS_MAX} characters.")
        workspace, folder = await asyncio.to_thread(self.folder, call, given)
        found, note = await self.search(workspace, folder, given, pattern=pattern, hits_max=HITS_MAX)
        return "\n".join([*(found or ["Nothing found."]), *filter(None, [note])])


def _read(output: str) -> Iterator[tuple[str, str]]:
    for line in output.splitlines():
        with suppress(ValueError):  # the last line of a program that was ended while it wrote
            kind, text = json.loads(line)
            yield kind, text


def _entries(folder: Path) -> tuple[list[str], str]:
    """Return the names in a folder, those of folders with a slash, and a note if there are more."""
    try:
        found = sorted(folder.iterdir())
    except OSError as error:
        raise ToolFailed(f"The folder cannot be read: {error.strerror}.") from error
    names = [f"{each.name}/" if each.is_dir() else each.name for each in found[:LISTED_MAX]]
    return names, f"There are {len(found)}; use a glob." if len(found) > LISTED_MAX else ""
