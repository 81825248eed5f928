"""One tool of an MCP server, offered as ``server__tool``. The server gives its schema."""

import hashlib
import json
import re
from typing import Final, Protocol

from keryx.core.turns.rules.tool_offer import ToolOffer
from keryx.core.values.graphemes import cut, one_line
from keryx.core.values.json_value import JsonValue
from keryx.core.values.turn_states import StepEffect
from keryx.errors import ToolFailed
from keryx.tools.mcp.contract import CallRefused, CallTimedOut, ListedTool
from keryx.tools.mcp.settings import McpServerSettings
from keryx.tools.tool import Tool, ToolCall

NAME_MAX: Final = 64
"""The longest name of a tool that every provider accepts."""
DESCRIPTION_MAX: Final = 4_000
OUTPUT_MAX: Final = 5_000_000
"""The characters of a result that are kept. A long result is stored beside the conversation."""
ARGUMENTS_SHOWN_MAX: Final = 300

_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9_-]")


class ToolServer(Protocol):
    """The server of a tool."""

    settings: McpServerSettings

    async def call(self, tool: str, call: ToolCall, *, effect: StepEffect) -> JsonValue:
        """Call a tool of the server."""


class McpTool(Tool):
    """One tool of a server."""

    def __init__(self, server: ToolServer, listed: ListedTool) -> None:
        self._server = server
        self._tool = listed.name
        settings = server.settings
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
        name = self._server.settings.name
        try:
            result = await self._server.call(self._tool, call, effect=self.offer.effect)
        except CallRefused as refusal:
            raise ToolFailed(str(_limited(str(refusal)))) from None
        except CallTimedOut as seconds:
            raise ToolFailed(
                f"The server {name!r} did not answer within {seconds} s: it is unknown whether the call was done."
            ) from None
        return _limited(result)

    def question(self, call: ToolCall) -> str:
        """Return the question that a person is asked before the call."""
        arguments = one_line(json.dumps(dict(call.arguments), ensure_ascii=False), ARGUMENTS_SHOWN_MAX)
        server = self._server.settings.name
        return f"May I use {self._tool!r} of the MCP server {server!r}? It is given: {arguments}"


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
    effect = settings.effects.get(tool.name)
    if effect is not None:
        return effect
    # A call that may be repeated is not for that reason allowed: deleting twice is no worse than deleting once.
    return "pure" if tool.only_reads else "ask"


def _limited(result: JsonValue) -> JsonValue:
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    if len(text) <= OUTPUT_MAX:
        return result
    return f"{text[:OUTPUT_MAX]}\n[cut here: {len(text)} characters in all, of which {OUTPUT_MAX} are kept]"
