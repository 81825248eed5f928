"""The contract between the tools of MCP servers and the module that speaks the protocol.

The protocol's package takes a second to load, so only ``client`` imports it.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from keryx.core.values.json_value import JsonValue
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTool:
    """A tool as its server lists it."""

    name: str
    description: str
    schema: Mapping[str, Any]
    only_reads: bool = False


class CallRefused(Exception):
    """The server refused a call; the message is the server's own."""


class CallTimedOut(Exception):
    """The server did not answer a call in time; the argument is the time limit in seconds."""


class ServerGone(Exception):
    """The server ended during a call."""


class ServerConnection(Protocol):
    """A connected server."""

    gone: asyncio.Event
    """Set when the server has ended, or the connection to it."""

    async def list_tools(self) -> list[ListedTool]:
        """Return the tools of the server."""

    async def call(self, tool: str, arguments: dict[str, Any]) -> JsonValue:
        """Call a tool and return its result; raise ``CallRefused``, ``CallTimedOut`` or ``ServerGone``."""
