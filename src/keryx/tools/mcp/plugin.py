"""The tools of MCP servers as a plug-in."""

from typing import Final

from keryx.tools.mcp.settings import ROWS, mcp_servers
from keryx.tools.plugin import MadeTools, ToolContext, ToolPlugin


def _make(context: ToolContext) -> MadeTools:
    from keryx.tools.mcp.servers import FIRST_SECONDS, McpServers

    servers = McpServers(
        mcp_servers(context.configuration),
        folder=context.configuration.data_dir / "mcp",
        first_seconds=None if context.is_for_one_turn else FIRST_SECONDS,
    )
    return MadeTools(source=servers)


PLUGIN: Final = ToolPlugin(settings=ROWS, check=mcp_servers, make=_make)
