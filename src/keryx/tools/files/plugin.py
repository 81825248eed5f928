"""The tools for files as a plug-in."""

from collections.abc import Sequence
from typing import Final

from keryx.tools.plugin import MadeTools, ToolPlugin
from keryx.tools.tool import Tool
from keryx.tools.workspace import Workspaces


def file_tools(workspaces: Workspaces) -> Sequence[Tool]:
    """Return the tools that work on files. A new file tool is a module in this folder and an entry here."""
    from keryx.tools.files.edit_file import EditFile
    from keryx.tools.files.find_in_files import FindInFiles
    from keryx.tools.files.list_files import ListFiles
    from keryx.tools.files.read_file import ReadFile
    from keryx.tools.files.write_file import WriteFile

    kinds = (ReadFile, WriteFile, EditFile, ListFiles, FindInFiles)
    return [kind(workspaces) for kind in kinds]


PLUGIN: Final = ToolPlugin(make=lambda context: MadeTools(tools=file_tools(context.workspaces)))
