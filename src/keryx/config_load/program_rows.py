"""Rows of the table about programs of others: who answers instead of a model, and MCP servers.

They stand in the owner's file only: a project must not have programs started.
"""

from typing import Any, Final, get_args

from keryx.config import AgentSettings, CommandFormat, McpServerSettings
from keryx.config_load import readers
from keryx.config_load.readers import one_of, optional, whole
from keryx.config_load.setting import Setting
from keryx.domain.turn import STEP_EFFECTS, StepEffect

_AGENT = AgentSettings()
_SERVER = McpServerSettings(name="")
_EFFECT = one_of(STEP_EFFECTS)

AGENT_ACP: Setting[tuple[str, ...]] = Setting(
    name="agent.acp",
    read=readers.command_line,
    default=(),
    place="own",
    is_path=True,
    help="The command line of an ACP program that answers instead of a model.",
)
AGENT_COMMAND: Setting[tuple[str, ...]] = Setting(
    name="agent.command",
    read=readers.command_line,
    default=(),
    place="own",
    is_path=True,
    help="The command line of a program that is run for each turn and answers it.",
)
AGENT_FORMAT: Setting[CommandFormat] = Setting(
    name="agent.format",
    read=one_of(get_args(CommandFormat)),
    default=_AGENT.format,
    place="own",
    help="What that program reads and writes: `text`, or `jsonl`, an object a line.",
)
AGENT_TIMEOUT: Setting[int] = Setting(
    name="agent.timeout_seconds",
    read=whole(1, 86_400),
    default=_AGENT.timeout_seconds,
    place="own",
    help="How long that program may be silent, before its first word and after any other.",
)
MCP_COMMAND: Setting[tuple[str, ...]] = Setting(
    name="mcp.servers.<name>.command",
    read=readers.command_line,
    default=(),
    place="own",
    is_path=True,
    chosen=readers.server_name,
    help="The command line of an MCP server that Keryx starts.",
)
MCP_ENV: Setting[tuple[str, ...]] = Setting(
    name="mcp.servers.<name>.env",
    read=readers.pairs,
    default=(),
    place="own",
    chosen=readers.server_name,
    holds_pairs=True,
    help="Variables it is given; `$NAME` takes a value from the environment or the `.env`.",
)
MCP_URL: Setting[str | None] = Setting(
    name="mcp.servers.<name>.url",
    read=optional(readers.web_address),
    default=None,
    place="own",
    chosen=readers.server_name,
    help="The address of an MCP server that runs elsewhere (streamable HTTP).",
)
MCP_HEADERS: Setting[tuple[str, ...]] = Setting(
    name="mcp.servers.<name>.headers",
    read=readers.pairs,
    default=(),
    place="own",
    chosen=readers.server_name,
    holds_pairs=True,
    help="Headers it is sent; `$NAME` in them is taken as above.",
)
MCP_TOOLSET: Setting[str | None] = Setting(
    name="mcp.servers.<name>.toolset",
    read=optional(readers.toolset),
    default=None,
    place="own",
    chosen=readers.server_name,
    help="The set its tools belong to; else `mcp-<name>`.",
)
MCP_EFFECTS: Setting[tuple[str, ...]] = Setting(
    name="mcp.servers.<name>.effects",
    read=readers.pairs_of(_EFFECT),
    default=(),
    place="own",
    chosen=readers.server_name,
    holds_pairs=True,
    help="What its tools do, by name: `pure`, `idempotent`, `once` or `ask`.",
)
MCP_TIMEOUT: Setting[int | None] = Setting(
    name="mcp.servers.<name>.timeout_seconds",
    read=whole(1, 3_600),
    default=None,
    place="own",
    chosen=readers.server_name,
    help=f"How long a call of it may take; else {_SERVER.timeout_seconds}.",
)

MCP_ROWS: Final = (MCP_COMMAND, MCP_ENV, MCP_URL, MCP_HEADERS, MCP_TOOLSET, MCP_EFFECTS, MCP_TIMEOUT)
ROWS: Final[tuple[Setting[Any], ...]] = (AGENT_ACP, AGENT_COMMAND, AGENT_FORMAT, AGENT_TIMEOUT, *MCP_ROWS)


def effect_of(text: str) -> StepEffect:
    """Return an effect that was read before."""
    return _EFFECT(text)
