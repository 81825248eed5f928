"""``find_in_files``: find lines that contain a text or match a regular expression."""

import asyncio
from typing import Final

from keryx.core.values.json_value import JsonValue
from keryx.errors import ToolFailed
from keryx.tools.base_tool import Arguments, Parameter
from keryx.tools.files.search_tool import FOLDER, SearchTool
from keryx.tools.tool import ToolCall

HITS_MAX: Final = 200
PATTERN_CHARACTERS_MAX: Final = 1_000


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
