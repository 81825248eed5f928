"""The tools that act on Keryx itself as a plug-in."""

from typing import Final

from keryx.tools.plugin import MadeTools, ToolContext, ToolPlugin


def _make(context: ToolContext) -> MadeTools:
    from keryx.tools.keryx.toolset import keryx_tools

    return MadeTools(
        tools=keryx_tools(
            context.database,
            ids=context.ids,
            zone=context.configuration.timezone,
            output_dir=context.configuration.output_dir,
            splitters=context.splitters,
            troubles=context.troubles,
        )
    )


PLUGIN: Final = ToolPlugin(make=_make)
