"""The tools for files as a plug-in."""

from collections.abc import Sequence
from typing import Final

from keryx.tools.plugin import MadeTools, ToolPlugin
from keryx.tools.tool import Tool
from keryx.tools.workspace import Workspaces


def file_tools(workspaces: Workspaces) -> Sequence[Tool]:
    """Return the tools that work on files. A new file tool is a class in this folder and an entry here."""
    from keryx.tools.files.file_tools import EditFile, ReadFile, WriteFile
    from keryx.tools.files.search_tools import FindInFiles, ListFiles

    kinds = (ReadFile, WriteFile, EditFile, ListFiles, FindInFiles)
    return [kind(workspaces) for kind in kinds]


PLUGIN: Final = ToolPlugin(make=lambda context: MadeTools(tools=file_tools(context.workspaces)))
