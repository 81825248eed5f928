"""One tool of an MCP server, offered as ``server__tool``. The server gives its schema.

The tools that a server listed last are stored in a file, so that they are offered before the server is up.
"""

import hashlib
import json
import logging
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
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

_log = logging.getLogger("keryx.tools.mcp.servers")
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


def read_tools(path: Path, settings: McpServerSettings) -> list[ListedTool] | None:
    """Return the tools that the server listed last, or None if they are not known."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["server"] != _identity(settings):
            return None
        return [ListedTool(**each) for each in stored["tools"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_tools(path: Path, settings: McpServerSettings, tools: Sequence[ListedTool]) -> None:
    """Store the tools of the server. If that fails, the tools are used all the same."""
    stored = {"server": _identity(settings), "tools": [asdict(each) for each in tools]}
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(stored), encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        _log.warning("the tools of the MCP server %s cannot be stored: %s", settings.name, error.strerror)


def _identity(settings: McpServerSettings) -> str:
    """Return a hash that differs for another server of the same name, whose tools are not used."""
    address = json.dumps([settings.command, settings.url])
    return hashlib.sha256(address.encode()).hexdigest()
