"""Tools that list files of the workspace and find lines in them.

The looking is done by a program of our own in its own process, ``programs.look``: it is ended when its time is up, and
what it found until then counts.
"""

import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from keryx.domain.json_value import JsonValue
from keryx.domain.toolset import FILES
from keryx.tools.plain import Arguments, Parameter, PlainTool
from keryx.tools.programs import look
from keryx.tools.running import Program, run_program
from keryx.tools.tool import Tool, ToolFailed, Use
from keryx.tools.workspace import Workspaces

LISTED_MAX: Final = 500
HITS_MAX: Final = 200
PATTERN_CHARACTERS_MAX: Final = 1_000
LOOK_SECONDS: Final = 20.0
OUTPUT_BYTES_MAX: Final = 20_000_000
"""More than so many hits can be: nothing is dropped."""

_FOLDER: Final = Parameter(help="The folder to look in, from the workspace on; else the workspace")


def finding_tools(workspaces: Workspaces, *, seconds: float = LOOK_SECONDS) -> Sequence[Tool]:
    """Return the tools of this module; a look takes at most so many seconds."""
    return [ListFiles(workspaces, seconds=seconds), FindInFiles(workspaces, seconds=seconds)]


class _Looking(PlainTool):
    """A tool that goes through a folder."""

    toolset = FILES

    def __init__(self, workspaces: Workspaces, *, seconds: float) -> None:
        self._workspaces = workspaces
        self._seconds = seconds

    def _folder(self, use: Use, given: Arguments) -> tuple[Path, Path, list[str]]:
        """Return the workspace, the folder in it, and what is kept out."""
        workspace = self._workspaces.of(use)
        folder = workspace.inside(given.text("folder"))
        if not folder.is_dir():
            raise ToolFailed(f"There is no folder {given.text('folder')!r} in the workspace.")
        return workspace.root, folder, [str(each) for each in workspace.kept_out]

    async def _look(self, request: look.Request) -> tuple[list[str], str]:
        """Return what was found, and what is to be said about what was not looked at."""
        ran = await run_program(
            Program(
                arguments=[sys.executable, "-I", "-S", look.__file__],
                folder=Path(request["root"]),
                environment={},
                seconds=self._seconds,
                given=json.dumps(request).encode(),
                output_bytes_max=OUTPUT_BYTES_MAX,
            )
        )
        told = list(_read(ran.output))
        for kind, what in told:
            if kind == "bad":
                raise ToolFailed(f"The pattern is no regular expression: {what}.")
        found = [what for kind, what in told if kind == "hit"]
        if ran.exit_code is None:
            return (
                found,
                f"This is not all: it was ended after {self._seconds:g} s. Look in a smaller folder.",
            )
        assert ran.exit_code == 0, f"the program said: {ran.output}"
        return found, f"There is more than these {len(found)}; look for less." if ("more", "") in told else ""


class ListFiles(_Looking):
    """Lists what is in a folder, or the files whose names fit a glob."""

    name = "list_files"
    description = (
        "List the files of the workspace: what is in a folder or, with a glob such as '*.py' or 'src/**/test_*.py', "
        "the files below it whose names fit."
    )
    parameters = {  # noqa: RUF012 - never changed
        "folder": _FOLDER,
        "glob": Parameter(
            help="Which files, in whatever folder below; else only what is in the folder itself"
        ),
    }

    async def work(self, use: Use, given: Arguments) -> JsonValue:
        """Return a line for each."""
        root, folder, kept_out = await asyncio.to_thread(self._folder, use, given)
        glob = given.text("glob")
        if glob:
            found, note = await self._look(
                look.Request(
                    root=str(root),
                    folder=str(folder),
                    kept_out=kept_out,
                    glob=glob,
                    pattern=None,
                    is_regex=False,
                    ignore_case=False,
                    hits_max=LISTED_MAX,
                )
            )
        else:
            found, note = await asyncio.to_thread(_entries, folder)
        shown = "." if folder == root else str(folder.relative_to(root))
        heading = f"In {shown} of {root}:" if found else f"Nothing in {shown} of {root}."
        return "\n".join([heading, *found, *filter(None, [note])])


class FindInFiles(_Looking):
    """Finds lines."""

    name = "find_in_files"
    description = (
        "Find lines in the text files of the workspace that hold a text, or fit a regular expression (Python's). "
        "Binary files, files over 5 MB and .git are left out."
    )
    parameters = {  # noqa: RUF012 - never changed
        "pattern": Parameter(help="What to look for", required=True),
        "regex": Parameter(
            kind="boolean", help="Whether it is a regular expression; else it is taken literally"
        ),
        "ignore_case": Parameter(kind="boolean", help="Whether capital and small letters are the same"),
        "folder": _FOLDER,
        "glob": Parameter(help="In which files, such as '*.py'; else in all of them"),
    }

    async def work(self, use: Use, given: Arguments) -> JsonValue:
        """Return each line with its file and number."""
        pattern = given.text("pattern")
        if len(pattern) > PATTERN_CHARACTERS_MAX:
            raise ToolFailed(f"The pattern is too long; give at most {PATTERN_CHARACTERS_MAX} characters.")
        root, folder, kept_out = await asyncio.to_thread(self._folder, use, given)
        found, note = await self._look(
            look.Request(
                root=str(root),
                folder=str(folder),
                kept_out=kept_out,
                glob=given.text("glob"),
                pattern=pattern,
                is_regex=given.flag("regex"),
                ignore_case=given.flag("ignore_case"),
                hits_max=HITS_MAX,
            )
        )
        return "\n".join([*(found or ["Nothing found."]), *filter(None, [note])])


def _read(output: str) -> Iterator[tuple[str, str]]:
    for line in output.splitlines():
        with suppress(ValueError):  # the last one, of a program that was ended while it wrote
            kind, what = json.loads(line)
            yield kind, what


def _entries(folder: Path) -> tuple[list[str], str]:
    """Return what is in a folder, folders with a slash behind them, and whether that is all."""
    try:
        found = sorted(folder.iterdir())
    except OSError as error:
        raise ToolFailed(f"The folder cannot be read: {error.strerror}.") from error
    names = [f"{each.name}/" if each.is_dir() else each.name for each in found[:LISTED_MAX]]
    return names, f"There are {len(found)}; use a glob." if len(found) > LISTED_MAX else ""
