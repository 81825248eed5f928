"""The MCP servers of a configuration, as one source of tools."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from keryx.tools.mcp.server import START_SECONDS, McpServer
from keryx.tools.mcp.settings import McpServerSettings
from keryx.tools.tool import Tool

FIRST_SECONDS: Final = 5.0
"""How long a turn waits for servers whose tools were never listed, if later turns can have the tools."""
TROUBLE: Final = "The MCP server {name!r} does not work: {why}"


class McpServers:
    """All servers of a configuration."""

    def __init__(
        self,
        servers: Iterable[McpServerSettings],
        *,
        folder: Path,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        start_seconds: float = START_SECONDS,
        first_seconds: float | None = FIRST_SECONDS,
    ) -> None:
        """Take the settings of the servers; ``folder`` is for their lists of tools and their logs.

        ``first_seconds`` is how long the first turn waits for tools that were never listed. With None it waits until
        each server has listed its tools or failed.
        """
        self._first_seconds = first_seconds
        self._servers = [
            McpServer(each, folder=folder, sleep=sleep, start_seconds=start_seconds) for each in servers
        ]

    def tools(self) -> Sequence[Tool]:
        """Return the tools that are known now."""
        return [tool for server in self._servers for tool in server.tools.values()]

    def troubles(self) -> Sequence[str]:
        """Return a sentence for each server that does not work. It is for the owner: it quotes the server's log."""
        return [
            TROUBLE.format(name=server.settings.name, why=server.trouble)
            for server in self._servers
            if server.trouble is not None
        ]

    async def ready(self) -> None:
        """Start the servers, and wait a moment for those whose tools were never listed."""
        for server in self._servers:
            server.start()
        unlisted = [server.listed.wait() for server in self._servers if not server.listed.is_set()]
        if unlisted:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._first_seconds):
                    await asyncio.gather(*unlisted)
            for server in self._servers:
                # Wait only once: no other turn is delayed.
                server.listed.set()

    async def aclose(self) -> None:
        """End the servers."""
        await asyncio.gather(*(server.close() for server in self._servers))
