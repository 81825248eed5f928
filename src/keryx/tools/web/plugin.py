"""The tools for the web as a plug-in."""

from typing import Final

from keryx.tools.plugin import MadeTools, ToolContext, ToolPlugin
from keryx.tools.web.settings import FETCH_ALLOW, FETCH_PRIVATE, ROWS


def _make(context: ToolContext) -> MadeTools:
    from keryx.tools.web.addresses import FetchPolicy
    from keryx.tools.web.toolset import web_tools

    values = context.configuration.values
    policy = FetchPolicy(private=values.of(FETCH_PRIVATE), allowed=frozenset(values.of(FETCH_ALLOW)))
    return MadeTools(tools=web_tools(policy))


PLUGIN: Final = ToolPlugin(settings=ROWS, make=_make)
