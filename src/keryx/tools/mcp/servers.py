"""The MCP servers of a configuration: start them, keep them connected, list their tools and call them.

A task of its own starts each server when the first turn needs tools, and again when the server ends. The tools that it
listed last are stored in a file, so they are offered from the first turn on, and only a call waits for the server.
"""

import asyncio
import importlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from keryx.core.values.json_value import JsonValue
from keryx.core.values.turn_states import StepEffect
from keryx.errors import ToolFailed
from keryx.tools.mcp.mcp_tool import ListedTool, McpTool, ServerGone, read_tools, write_tools
from keryx.tools.mcp.server_errors import error_kind, explain_error, last_line, log_size
from keryx.tools.mcp.settings import McpServerSettings
from keryx.tools.tool import Tool, ToolCall

if TYPE_CHECKING:
    from keryx.tools.mcp.client import McpConnection

START_SECONDS: Final = 30.0
"""How long a server may take to start and list its tools, and how long a call waits for that."""
FIRST_SECONDS: Final = 5.0
"""How long a turn waits for servers whose tools were never listed, if later turns can have the tools."""
CANCEL_SECONDS: Final = 5.0
PAUSE_FIRST_SECONDS: Final = 1.0
PAUSE_MAX_SECONDS: Final = 60.0
TROUBLE: Final = "The MCP server {name!r} does not work: {why}"
AWAY: Final = "The server {name!r} cannot be reached now; it is tried again. Try later, or do without it."
UNKNOWN: Final = "The server {name!r} ended during the call: it is unknown whether the call was done."

_log = logging.getLogger("keryx.tools.mcp.servers")


class McpServer:
    """One server: the task that keeps it connected, and the tools it listed last."""

    def __init__(
        self,
        settings: McpServerSettings,
        *,
        folder: Path,
        sleep: Callable[[float], Awaitable[None]],
        start_seconds: float,
    ) -> None:
        self.settings = settings
        self._start_seconds = start_seconds
        self._sleep = sleep
        self._error_log = folder / f"{settings.name}.log"
        self._cache = folder / f"{settings.name}.json"
        self._task: asyncio.Task[None] | None = None
        self._is_ending = False
        self._connection: McpConnection | None = None
        self._is_up = asyncio.Event()
        self._has_changed = asyncio.Event()
        self.listed = asyncio.Event()
        """Set when the tools are known, or were waited for long enough, or will not come soon."""
        self.trouble: str | None = None
        """Why the server does not work; None while it works or starts."""
        self.tools: Mapping[str, McpTool] = {}
        self._offer(read_tools(self._cache, settings))

    def start(self) -> None:
        """Start the task that keeps the server connected, if it does not run yet."""
        if self._task is None:
            self._task = asyncio.create_task(self._keep_connected(), name=f"keryx-mcp-{self.settings.name}")

    async def close(self) -> None:
        """End the server."""
        self._is_ending = True
        while self._task is not None and not self._task.done():
            # More than once: the package may raise its own error instead of the cancellation.
            self._task.cancel()
            await asyncio.wait([self._task], timeout=CANCEL_SECONDS)

    async def call(self, tool: str, call: ToolCall, effect: StepEffect) -> JsonValue:
        """Call a tool when the server is up; repeat the call if the server ended and the effect allows it."""
        for is_last in (False, True):
            connection = await self._connected()
            try:
                return await connection.call(tool, dict(call.arguments))
            except ServerGone:
                connection.gone.set()
                if is_last or effect not in ("pure", "idempotent"):
                    raise ToolFailed(UNKNOWN.format(name=self.settings.name)) from None
        raise AssertionError

    async def _connected(self) -> "McpConnection":
        self.start()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._start_seconds):
                while not self._is_up.is_set() or self._connection is None or self._connection.gone.is_set():
                    self._is_up.clear()
                    await self._is_up.wait()
                return self._connection
        raise ToolFailed(AWAY.format(name=self.settings.name))

    async def _keep_connected(self) -> None:
        """Connect, and connect again when the server ends; the pauses grow while it does not work."""
        pause = PAUSE_FIRST_SECONDS
        while not self._is_ending:
            was_up = False
            log_bytes = await asyncio.to_thread(log_size, self._error_log)
            try:
                was_up = await self._serve()
            except Exception as error:  # noqa: BLE001 - a foreign program may raise anything; it is tried again
                name, kind = self.settings.name, error_kind(error)
                _log.warning("the MCP server %s failed: %s; mcp/%s.log may say more", name, kind, name)
                line = await asyncio.to_thread(last_line, self._error_log, since=log_bytes)
                self.trouble = explain_error(error, line, start_seconds=self._start_seconds)
                self.listed.set()
            finally:
                self._connection = None
                self._is_up.clear()
            pause = PAUSE_FIRST_SECONDS if was_up else min(2 * pause, PAUSE_MAX_SECONDS)
            await self._sleep(pause)

    async def _serve(self) -> bool:
        """Stay connected until the server is gone; return True, because it was up."""
        module = await asyncio.to_thread(importlib.import_module, "keryx.tools.mcp.client")
        async with (
            asyncio.timeout(self._start_seconds) as until_up,
            module.connected(self.settings, errors=self._error_log, changed=self._has_changed.set) as opened,
        ):
            connection: McpConnection = opened
            await self._list(connection)
            until_up.reschedule(None)
            self._connection = connection
            self.trouble = None
            self._is_up.set()
            _log.info("the MCP server %s is up with %s tools", self.settings.name, len(self.tools))
            while not connection.gone.is_set():
                await _either(connection.gone, self._has_changed)
                if self._has_changed.is_set() and not connection.gone.is_set():
                    await self._list(connection)
        _log.info("the MCP server %s has ended; it is started again", self.settings.name)
        return True

    async def _list(self, connection: "McpConnection") -> None:
        self._has_changed.clear()
        tools = await connection.list_tools()
        await asyncio.to_thread(write_tools, self._cache, self.settings, tools)
        self._offer(tools)

    def _offer(self, tools: Sequence[ListedTool] | None) -> None:
        if tools is not None:
            made = [McpTool(self.settings, each, self.call) for each in tools]
            self.tools = {tool.offer.name: tool for tool in made}
            self.listed.set()


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


async def _either(*events: asyncio.Event) -> None:
    """Wait until one of the events is set."""
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
