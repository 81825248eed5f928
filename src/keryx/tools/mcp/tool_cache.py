"""The tools that a server listed last, stored in a file, so that they are offered before the server is up."""

import hashlib
import json
import logging
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from keryx.tools.mcp.mcp_tool import ListedTool
from keryx.tools.mcp.settings import McpServerSettings

_log = logging.getLogger("keryx.tools.mcp.servers")


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
