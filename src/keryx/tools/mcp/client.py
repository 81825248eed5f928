"""Connect to one MCP server with the protocol's own package.

This module is imported when the first server is needed, because the package takes a second to load. One task opens and
closes a connection; other tasks may call through it.
"""

import asyncio
import json
import logging
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

from keryx.core.values.graphemes import one_line
from keryx.core.values.json_value import JsonValue, check_json
from keryx.errors import InvalidValue, ToolFailed
from keryx.subprocesses.start_program import open_errors
from keryx.tools.mcp.mcp_tool import ListedTool, ServerGone
from keryx.tools.mcp.settings import McpServerSettings

PAGES_MAX: Final = 100
CONNECT_SECONDS: Final = 10.0
QUOTED_MAX: Final = 500
OUTPUT_MAX: Final = 5_000_000
"""The characters of a result that are kept. A long result is stored beside the conversation."""

# The package logs messages that it cannot read, word for word: they may hold private texts.
logging.getLogger("mcp").setLevel(logging.CRITICAL)


@asynccontextmanager
async def connected(
    server: McpServerSettings, *, errors: Path, changed: Callable[[], None]
) -> AsyncIterator["McpConnection"]:
    """Connect to a server until the end of the block; ``changed`` is called when its tools have changed."""
    gone = asyncio.Event()

    async def handle(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changed()

    async with AsyncExitStack() as stack:
        if server.command:
            errlog = stack.enter_context(open_errors(errors))
            program, *arguments = server.command
            parameters = StdioServerParameters(command=program, args=arguments, env=dict(server.env))
            transport: Any = stdio_client(parameters, errlog=errlog)  # type: ignore[arg-type]  # Only its descriptor is used.
        else:
            assert server.url is not None
            timeout = httpx2.Timeout(CONNECT_SECONDS, read=server.timeout_seconds)
            client = httpx2.AsyncClient(headers=dict(server.headers), timeout=timeout)
            http = await stack.enter_async_context(client)
            transport = streamable_http_client(server.url, http_client=http)
        opened = Client(_watched(transport, gone), message_handler=handle, cache=None)
        yield McpConnection(await stack.enter_async_context(opened), gone, server)


class McpConnection:
    """A connected server."""

    def __init__(self, client: Client, gone: asyncio.Event, server: McpServerSettings) -> None:
        self._client = client
        self._server = server
        self.gone = gone
        """Set when the server has ended, or the connection to it."""

    async def list_tools(self) -> list[ListedTool]:
        """Return the tools of the server."""
        listed: list[ListedTool] = []
        cursor: str | None = None
        for _ in range(PAGES_MAX):
            page = await self._client.list_tools(cursor=cursor)
            listed += map(_listed, page.tools)
            cursor = page.next_cursor
            if cursor is None:
                break
        return listed

    async def call(self, tool: str, arguments: dict[str, Any]) -> JsonValue:
        """Call a tool and return its result; raise ``ToolFailed`` or ``ServerGone``."""
        seconds = self._server.timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                result = await self._client.call_tool(tool, arguments)
        except TimeoutError:
            raise ToolFailed(
                f"The server {self._server.name!r} did not answer within {seconds} s: "
                "it is unknown whether the call was done."
            ) from None
        except MCPError as error:
            if error.code == types.CONNECTION_CLOSED:
                raise ServerGone from error
            raise ToolFailed(one_line(error.message, QUOTED_MAX)) from error
        except (httpx2.HTTPError, OSError) as error:
            raise ServerGone from error
        except (ValueError, RuntimeError) as error:
            raise ToolFailed("its answer does not match its own schema.") from error
        content = _limited(_content(result))
        if result.is_error:
            raise ToolFailed(str(content))
        return content


@asynccontextmanager
async def _watched(transport: Any, gone: asyncio.Event) -> AsyncIterator[tuple[Any, Any]]:
    """Open a transport that notices the end of the other side, even while no call is made."""
    async with transport as (read, write):
        yield _ReadStream(read, gone), write


class _ReadStream:
    """The stream from a server; sets ``gone`` at its end."""

    def __init__(self, stream: Any, gone: asyncio.Event) -> None:
        self._stream = stream
        self._gone = gone

    async def __aenter__(self) -> "_ReadStream":
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._stream.__aexit__(*error)

    def __aiter__(self) -> "_ReadStream":
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except BaseException:
            self._gone.set()
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _listed(tool: types.Tool) -> ListedTool:
    hints = tool.annotations
    return ListedTool(
        name=tool.name,
        description=tool.description or tool.title or "",
        schema=tool.input_schema,
        only_reads=bool(hints and hints.read_only_hint),
    )


def _content(result: types.CallToolResult) -> JsonValue:
    """Return a result as JSON: its structure if it has one, else its text, with a note for content that is not text."""
    if result.structured_content is not None and not result.is_error:
        content: JsonValue = result.structured_content
        try:
            check_json(content, where="the result of the tool")
        except InvalidValue:
            return str(content)
        return content
    return "\n".join(map(_text, result.content))


def _limited(result: JsonValue) -> JsonValue:
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    if len(text) <= OUTPUT_MAX:
        return result
    return f"{text[:OUTPUT_MAX]}\n[cut here: {len(text)} characters in all, of which {OUTPUT_MAX} are kept]"


def _text(block: types.ContentBlock) -> str:
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
