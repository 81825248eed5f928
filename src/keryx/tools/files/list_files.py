"""``list_files``: list a folder, or the files whose names match a glob."""

import asyncio
from pathlib import Path
from typing import Final

from keryx.core.values.json_value import JsonValue
from keryx.errors import ToolFailed
from keryx.tools.base_tool import Arguments, Parameter
from keryx.tools.files.search_tool import FOLDER, SearchTool
from keryx.tools.tool import ToolCall

LISTED_MAX: Final = 500


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


def _entries(folder: Path) -> tuple[list[str], str]:
    """Return the names in a folder, those of folders with a slash, and a note if there are more."""
    try:
        found = sorted(folder.iterdir())
    except OSError as error:
        raise ToolFailed(f"The folder cannot be read: {error.strerror}.") from error
    names = [f"{each.name}/" if each.is_dir() else each.name for each in found[:LISTED_MAX]]
    return names, f"There are {len(found)}; use a glob." if len(found) > LISTED_MAX else ""
