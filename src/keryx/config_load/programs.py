"""From the rows about programs of others to their settings: what contradicts itself or is missing is told here."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from keryx.config import AgentSettings, McpServerSettings
from keryx.config_load import program_rows as rows
from keryx.config_load.setting import PREFIX
from keryx.config_load.sources import Reading
from keryx.errors import InvalidValue

_REFERENCE: Final = re.compile(r"\$(?:(\w+)|\{(\w+)\})")


def agent_of(reading: Reading, variables: Mapping[str, str]) -> AgentSettings:
    """Return who answers instead of a model; raise ``InvalidValue`` where two shall."""
    acp, command = reading.of(rows.AGENT_ACP), reading.of(rows.AGENT_COMMAND)
    if acp and command:
        raise InvalidValue(
            f"{reading.origin_of(rows.AGENT_COMMAND)}: agent.command: agent.acp is set too; keep one of them"
        )
    own = {name: value for name, value in variables.items() if not name.startswith(PREFIX)}
    return AgentSettings(
        acp=acp,
        command=command,
        format=reading.of(rows.AGENT_FORMAT),
        timeout_seconds=reading.of(rows.AGENT_TIMEOUT),
        environment=MappingProxyType(own),
    )


def mcp_servers_of(reading: Reading, variables: Mapping[str, str]) -> tuple[McpServerSettings, ...]:
    """Return the servers in the order of their names; raise ``InvalidValue`` with every problem, a line each."""
    names = {found.named.chosen or "": found.origin for row in rows.MCP_ROWS for found in reading.chosen(row)}
    servers: list[McpServerSettings] = []
    problems: list[str] = []
    for name in sorted(names):
        try:
            servers.append(_server(reading, name, variables))
        except InvalidValue as error:
            problems.append(f"{names[name]}: mcp.servers.{name}: {error}")
    if problems:
        raise InvalidValue("\n".join(problems))
    return tuple(servers)


def _server(reading: Reading, name: str, variables: Mapping[str, str]) -> McpServerSettings:
    command, url = reading.of(rows.MCP_COMMAND, name), reading.of(rows.MCP_URL, name)
    if bool(command) == bool(url):
        raise InvalidValue("give either a command, which is started, or a url")
    effects = _named(reading.of(rows.MCP_EFFECTS, name))
    timeout = reading.of(rows.MCP_TIMEOUT, name)
    return McpServerSettings(
        name=name,
        command=command,
        env=MappingProxyType(_filled(reading.of(rows.MCP_ENV, name), variables)),
        url=url,
        headers=MappingProxyType(_filled(reading.of(rows.MCP_HEADERS, name), variables)),
        toolset=reading.of(rows.MCP_TOOLSET, name),
        effects=MappingProxyType({tool: rows.effect_of(effect) for tool, effect in effects.items()}),
        timeout_seconds=McpServerSettings(name="").timeout_seconds if timeout is None else timeout,
    )


def _named(pairs: tuple[str, ...]) -> dict[str, str]:
    parted = (each.partition("=") for each in pairs)
    return {name.strip(): value for name, _, value in parted}


def _filled(pairs: tuple[str, ...], variables: Mapping[str, str]) -> dict[str, str]:
    """Return the values by their names, with what they take from variables."""

    def value_of(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in variables:
            raise InvalidValue(f"the variable {name} is not set; set it in the environment or the .env")
        return variables[name]

    return {name: _REFERENCE.sub(value_of, value) for name, value in _named(pairs).items()}
