"""Speaks with one MCP server, by the protocol's own package.

Imported when the first server is needed: it takes a second. A connection is entered and left by one task; others may
call through it.
"""

import asyncio
import logging
import sys
from asyncio.subprocess import SubprocessStreamProtocol
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import mcp_types as types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from keryx.agents.program import open_errors
from keryx.config import McpServerSettings
from keryx.domain.graphemes import one_line
from keryx.domain.json_value import JsonValue, check_json
from keryx.errors import InvalidValue
from keryx.tools.mcp_words import Gone, Listed, Refused, Silent

PAGES_MAX: Final = 100
CONNECT_SECONDS: Final = 10.0
QUOTED_MAX: Final = 500

# The package logs what it cannot read word for word, with the words of whoever wrote them.
logging.getLogger("mcp").setLevel(logging.CRITICAL)


if sys.version_info < (3, 11, 4):
    # There asyncio shows a traceback when a program ends that is being written to, unless who writes waits for the end
    # of the pipe; the package does not. Later versions of Python show nothing either.
    _lost = SubprocessStreamProtocol.pipe_connection_lost

    def _lost_quietly(protocol: Any, fd: int, exc: Exception | None) -> None:
        _lost(protocol, fd, exc)
        if fd == 0:
            protocol._stdin_closed.exception()  # noqa: SLF001 - asked for, it is not shown

    SubprocessStreamProtocol.pipe_connection_lost = _lost_quietly  # type: ignore[method-assign, assignment]


@asynccontextmanager
async def connected(
    server: McpServerSettings, *, errors: Path, changed: Callable[[], None]
) -> AsyncIterator["McpLink"]:
    """Connect to a server until the end of the block; ``changed`` is called when it has other tools than before."""
    gone = asyncio.Event()

    async def hear(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changed()

    async with AsyncExitStack() as stack:
        if server.command:
            errlog = stack.enter_context(open_errors(errors))
            program, *arguments = server.command
            parameters = StdioServerParameters(command=program, args=arguments, env=dict(server.env))
            transport: Any = stdio_client(parameters, errlog=errlog)  # type: ignore[arg-type]  # Only its number counts.
        else:
            assert server.url is not None
            timeout = httpx2.Timeout(CONNECT_SECONDS, read=server.timeout_seconds)
            client = httpx2.AsyncClient(headers=dict(server.headers), timeout=timeout)
            http = await stack.enter_async_context(client)
            transport = streamable_http_client(server.url, http_client=http)
        opened = Client(_Watched(transport, gone), message_handler=hear, cache=None)
        yield McpLink(await stack.enter_async_context(opened), gone, server)


class McpLink:
    """A server that is connected."""

    def __init__(self, client: Client, gone: asyncio.Event, server: McpServerSettings) -> None:
        self._client = client
        self._server = server
        self.gone = gone
        """Set when the server has ended, or the connection to it."""

    async def list_tools(self) -> list[Listed]:
        """Return the tools it has."""
        listed: list[Listed] = []
        cursor: str | None = None
        for _ in range(PAGES_MAX):
            page = await self._client.list_tools(cursor=cursor)
            listed += map(_listed, page.tools)
            cursor = page.next_cursor
            if cursor is None:
                break
        return listed

    async def call(self, tool: str, arguments: dict[str, Any]) -> JsonValue:
        """Call a tool and return what it gave; raise ``Refused``, ``Silent`` or ``Gone``."""
        seconds = self._server.timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                result = await self._client.call_tool(tool, arguments)
        except TimeoutError:
            raise Silent(seconds) from None
        except MCPError as error:
            if error.code == types.CONNECTION_CLOSED:
                raise Gone from error
            raise Refused(one_line(error.message, QUOTED_MAX)) from error
        except (httpx2.HTTPError, OSError) as error:
            raise Gone from error
        except (ValueError, RuntimeError) as error:
            raise Refused("its answer does not fit what it promised.") from error
        given = _given(result)
        if result.is_error:
            raise Refused(given if isinstance(given, str) else str(given))
        return given


class _Watched:
    """A transport of which it is known when the other side has ended, also while nobody calls."""

    def __init__(self, transport: Any, gone: asyncio.Event) -> None:
        self._transport = transport
        self._gone = gone

    async def __aenter__(self) -> tuple[Any, Any]:
        read, write = await self._transport.__aenter__()
        return _Read(read, self._gone), write

    async def __aexit__(self, *error: Any) -> Any:
        return await self._transport.__aexit__(*error)


class _Read:
    """What comes from a server, and the knowledge that nothing more does."""

    def __init__(self, stream: Any, gone: asyncio.Event) -> None:
        self._stream = stream
        self._gone = gone

    async def __aenter__(self) -> "_Read":
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._stream.__aexit__(*error)

    def __aiter__(self) -> "_Read":
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except BaseException:
            self._gone.set()
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _listed(tool: types.Tool) -> Listed:
    hints = tool.annotations
    return Listed(
        name=tool.name,
        description=tool.description or tool.title or "",
        schema=tool.input_schema,
        only_reads=bool(hints and hints.read_only_hint),
    )


def _given(result: types.CallToolResult) -> JsonValue:
    """Return what a tool gave as our JSON: its structure if it has one, else its text; what is no text is named."""
    if result.structured_content is not None and not result.is_error:
        try:
            check_json(result.structured_content, where="what the tool gave")
        except InvalidValue:
            return str(result.structured_content)
        given: JsonValue = result.structured_content
        return given
    return "\n".join(map(_named, result.content))


def _named(block: types.ContentBlock) -> str:
    match block:
        case types.TextContent():
            return block.text
        case types.EmbeddedResource(resource=types.TextResourceContents(text=text)):
            return text
        case types.ImageContent() | types.AudioContent():
            return f"[{block.mime_type}, {len(block.data) * 3 // 4} bytes, not kept]"
        case types.ResourceLink():
            return f"[{block.name}: {block.uri}]"
        case _:
            return f"[{block.type}, not kept]"
