"""An MCP server made with the protocol's own package: ``python mcp_by_package.py stdio`` or ``… PORT``."""

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("by package")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
