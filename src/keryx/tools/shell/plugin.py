"""The shell's tools as a plug-in."""

from typing import Final

from keryx.tools.plugin import MadeTools, ToolContext, ToolPlugin
from keryx.tools.shell.settings import VARIABLES, command_variables


def _make(context: ToolContext) -> MadeTools:
    from keryx.tools.shell.toolset import shell_tools

    configuration = context.configuration
    tools = shell_tools(
        context.database,
        context.background,
        context.workspaces,
        environment=command_variables(configuration.environ, named=configuration.values.of(VARIABLES)),
        profile=configuration.profile,
    )
    return MadeTools(tools=tools)


PLUGIN: Final = ToolPlugin(settings=(VARIABLES,), make=_make)
