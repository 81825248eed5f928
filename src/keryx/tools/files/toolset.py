"""The list of the file tools. A new file tool is a module of this folder and a line here."""

from collections.abc import Sequence

from keryx.tools.files.edit_file import EditFile
from keryx.tools.files.find_in_files import FindInFiles
from keryx.tools.files.list_files import ListFiles
from keryx.tools.files.read_file import ReadFile
from keryx.tools.files.write_file import WriteFile
from keryx.tools.tool import Tool
from keryx.tools.workspace import Workspaces


def file_tools(workspaces: Workspaces) -> Sequence[Tool]:
    """Return the tools that work on files."""
    return [
        ReadFile(workspaces),
        WriteFile(workspaces),
        EditFile(workspaces),
        ListFiles(workspaces),
        FindInFiles(workspaces),
    ]
