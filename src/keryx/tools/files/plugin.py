"""The tools for files as a plug-in."""

from typing import Final

from keryx.tools.plugin import MadeTools, ToolContext, ToolPlugin


def _make(context: ToolContext) -> MadeTools:
    from keryx.tools.files.toolset import file_tools

    return MadeTools(tools=file_tools(context.workspaces))


PLUGIN: Final = ToolPlugin(make=_make)
