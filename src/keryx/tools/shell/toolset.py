"""The list of the tools that run commands. A new tool is a module of this folder and a line here."""

from collections.abc import Mapping, Sequence

from keryx.core.processes.backend import Background
from keryx.store.database import Database
from keryx.tools.shell.process import ProcessTool
from keryx.tools.shell.terminal import Terminal
from keryx.tools.tool import Tool
from keryx.tools.workspace import Workspaces


def shell_tools(
    database: Database,
    background: Background,
    workspaces: Workspaces,
    *,
    environment: Mapping[str, str],
    profile: str,
) -> Sequence[Tool]:
    """Return the tools that run commands with ``environment`` and look after background processes."""
    return [
        Terminal(workspaces, environment=environment, profile=profile, background=background),
        ProcessTool(database, background),
    ]
