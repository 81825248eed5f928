"""The settings of MCP servers. They stand in the owner's file only: a project must not have programs started.

``mcp_servers`` reports settings of one server that are missing or contradict each other.
"""

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final, TypeVar

from keryx.config import Configuration
from keryx.config.readers import (
    Reader,
    checked,
    command_line,
    one_of,
    optional,
    pairs,
    pairs_of,
    web_address,
    whole,
)
from keryx.config.setting import Setting, Values
from keryx.core.people.rules.toolset import check_toolset
from keryx.core.values.turn_states import STEP_EFFECTS, StepEffect
from keryx.errors import InvalidValue
from keryx.values import dataclass

T = TypeVar("T")

_REFERENCE: Final = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_SERVER_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,23}")
_EFFECT: Final = one_of(STEP_EFFECTS)
CALL_SECONDS: Final = 60
"""How long a call may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerSettings:
    """One MCP server: a program that is started, or an address."""

    name: str
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    toolset: str | None = None
    effects: Mapping[str, StepEffect] = field(default_factory=dict)
    """The owner's statements about the effects of its tools, by the server's names for them."""
    timeout_seconds: int = CALL_SECONDS


def server_name(chosen: str) -> str:
    """Return a name that can begin the names of tools, or raise ``InvalidValue``."""
    if not _SERVER_NAME.fullmatch(chosen):
        raise InvalidValue(
            f"the server's name {chosen[:40]!r}: use a letter, then at most 23 lower-case letters, digits, '-' and '_'"
        )
    return chosen


def _setting(
    field: str,
    read: Reader[T],
    default: T,
    description: str,
    *,
    is_path: bool = False,
    holds_pairs: bool = False,
) -> Setting[T]:
    return Setting(
        name=f"mcp.servers.<name>.{field}",
        read=read,
        default=default,
        place="own",
        check_choice=server_name,
        is_path=is_path,
        holds_pairs=holds_pairs,
        help=description,
    )


COMMAND: Setting[tuple[str, ...]] = _setting(
    "command", command_line, (), "The command line of an MCP server that Keryx starts.", is_path=True
)
ENV: Setting[tuple[str, ...]] = _setting(
    "env",
    pairs,
    (),
    "Its environment variables; `$NAME` inserts a variable of the environment or the `.env`.",
    holds_pairs=True,
)
URL: Setting[str | None] = _setting(
    "url", optional(web_address), None, "The address of an MCP server that runs elsewhere (streamable HTTP)."
)
HEADERS: Setting[tuple[str, ...]] = _setting(
    "headers", pairs, (), "The HTTP headers of requests to it; `$NAME` works as above.", holds_pairs=True
)
TOOLSET: Setting[str | None] = _setting(
    "toolset", optional(checked(check_toolset)), None, "The toolset of its tools; else `mcp-<name>`."
)
EFFECTS: Setting[tuple[str, ...]] = _setting(
    "effects",
    pairs_of(_EFFECT),
    (),
    "The effects of its tools, by name: `pure`, `idempotent`, `once` or `ask`.",
    holds_pairs=True,
)
TIMEOUT: Setting[int | None] = _setting(
    "timeout_seconds", whole(1, 3_600), None, f"The time limit of a call; else {CALL_SECONDS}."
)
ROWS: Final[tuple[Setting[Any], ...]] = (COMMAND, ENV, URL, HEADERS, TOOLSET, EFFECTS, TIMEOUT)


def mcp_servers(configuration: Configuration) -> tuple[McpServerSettings, ...]:
    """Return the servers in the order of their names; raise ``InvalidValue`` with every problem, a line each."""
    values = configuration.values
    names = {found.choice or "": found.origin for row in ROWS for _, found in values.choices_of(row)}
    servers: list[McpServerSettings] = []
    problems: list[str] = []
    for name in sorted(names):
        try:
            servers.append(_server(values, name, configuration.variables))
        except InvalidValue as error:
            problems.append(f"{names[name]}: mcp.servers.{name}: {error}")
    if problems:
        raise InvalidValue("\n".join(problems))
    return tuple(servers)


def _server(values: Values, name: str, variables: Mapping[str, str]) -> McpServerSettings:
    command, url = values.of(COMMAND, name), values.of(URL, name)
    if bool(command) == bool(url):
        raise InvalidValue("give either a command, which is started, or a url")
    effects = {tool: _EFFECT(effect) for tool, effect in _named(values.of(EFFECTS, name)).items()}
    return McpServerSettings(
        name=name,
        command=command,
        env=_filled(values.of(ENV, name), variables),
        url=url,
        headers=_filled(values.of(HEADERS, name), variables),
        toolset=values.of(TOOLSET, name),
        effects=effects,
        timeout_seconds=values.of(TIMEOUT, name) or CALL_SECONDS,
    )


def _named(pairs: tuple[str, ...]) -> dict[str, str]:
    return {name.strip(): value for name, _, value in (each.partition("=") for each in pairs)}


def _filled(pairs: tuple[str, ...], variables: Mapping[str, str]) -> dict[str, str]:
    """Return the values by their names, with what they take from variables."""

    def value_of(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in variables:
            raise InvalidValue(f"the variable {name} is not set; set it in the environment or the .env")
        return variables[name]

    return {name: _REFERENCE.sub(value_of, value) for name, value in _named(pairs).items()}
