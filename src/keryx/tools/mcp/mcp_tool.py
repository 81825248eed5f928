"""One tool of an MCP server, offered as ``server__tool``. The server gives its schema."""

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from keryx.core.turns.rules.tool_offer import ToolOffer
from keryx.core.values.graphemes import cut, one_line
from keryx.core.values.json_value import JsonValue
from keryx.core.values.turn_states import StepEffect
from keryx.tools.mcp.settings import McpServerSettings
from keryx.tools.tool import Tool, ToolCall
from keryx.values import dataclass

NAME_MAX: Final = 64
"""The longest name of a tool that every provider accepts."""
DESCRIPTION_MAX: Final = 4_000
ARGUMENTS_SHOWN_MAX: Final = 300

_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9_-]")

CallServer: TypeAlias = Callable[[str, ToolCall, StepEffect], Awaitable[JsonValue]]
"""Calls a tool of the server by the server's name for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTool:
    """A tool as its server lists it."""

    name: str
    description: str
    schema: Mapping[str, Any]
    only_reads: bool = False


class ServerGone(Exception):
    """The server ended during a call."""


class McpTool(Tool):
    """One tool of a server."""

    def __init__(self, settings: McpServerSettings, listed: ListedTool, call_server: CallServer) -> None:
        self._server = settings.name
        self._tool = listed.name
        self._call_server = call_server
        self.offer = ToolOffer(
            name=offered_name(settings.name, listed.name),
            description=cut(listed.description or f"{listed.name} of {settings.name}", DESCRIPTION_MAX),
            parameters=dict(listed.schema),
            effect=effect_of(settings, listed),
            toolset=settings.toolset or f"mcp-{settings.name}",
            is_foreign=True,
        )

    async def run(self, call: ToolCall) -> JsonValue:
        """Call the tool and return its result, or raise ``ToolFailed``."""
        return await self._call_server(self._tool, call, self.offer.effect)

    def question(self, call: ToolCall) -> str:
        """Return the question that a person is asked before the call."""
        arguments = one_line(json.dumps(dict(call.arguments), ensure_ascii=False), ARGUMENTS_SHOWN_MAX)
        return f"May I use {self._tool!r} of the MCP server {self._server!r}? It is given: {arguments}"


def offered_name(server: str, tool: str) -> str:
    """Return a name that every provider accepts. A changed name ends with a hash, so that no two names are equal."""
    whole = f"{server}__{tool}"
    plain = _FOREIGN.sub("_", whole)
    if plain == whole and len(whole) <= NAME_MAX:
        return whole
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{plain[: NAME_MAX - 9]}_{digest}"


def effect_of(settings: McpServerSettings, tool: ListedTool) -> StepEffect:
    """Return the effect that the owner set; else a person is asked, unless the tool only reads."""
    # A call that may be repeated is not for that reason allowed: deleting twice is no worse than deleting once.
    return settings.effects.get(tool.name) or ("pure" if tool.only_reads else "ask")
