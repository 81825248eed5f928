"""Rows of the table of settings about what tools may reach."""

from typing import Any

from keryx.config import ToolsSettings
from keryx.config_load import readers
from keryx.config_load.setting import Setting

_TOOLS = ToolsSettings()

FETCH_PRIVATE = Setting(
    name="tools.fetch.private",
    read=readers.flag,
    default=_TOOLS.fetch_private,
    place="own",
    help="Whether `fetch_url` may reach addresses of private networks and of this machine.",
)
FETCH_ALLOW: Setting[tuple[str, ...]] = Setting(
    name="tools.fetch.allow",
    read=readers.hosts,
    default=_TOOLS.fetch_allow,
    place="own",
    help="The hosts that `fetch_url` may reach though their addresses are private; a list.",
)
TERMINAL_VARIABLES: Setting[tuple[str, ...]] = Setting(
    name="tools.terminal.variables",
    read=readers.variables,
    default=(),
    place="own",
    help="The variables that commands see though they look like secrets; a list.",
)

ROWS: tuple[Setting[Any], ...] = (FETCH_PRIVATE, FETCH_ALLOW, TERMINAL_VARIABLES)
