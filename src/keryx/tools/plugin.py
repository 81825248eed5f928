"""The contract of a tool plug-in: its settings, and how the tools are made.

The tools of Keryx itself are always available. Those of another package are available once a setting below
``tools.<name>`` has a value. ``toolsets`` decides which tools each role gets.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from keryx.config import Configuration, Plugin
from keryx.core.deliveries.rules.route import SplitChat
from keryx.core.processes.backend import Background
from keryx.ids import Ids
from keryx.store.database import Database
from keryx.tools.tool import Tool, ToolSource
from keryx.tools.workspace import Workspaces
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """The arguments for making tools."""

    configuration: Configuration
    database: Database
    ids: Ids
    background: Background
    splitters: Mapping[str, SplitChat]
    """Each connected platform's way to read the chat of a route."""
    troubles: Callable[[], Sequence[str]]
    """Returns a sentence for owners about each current problem."""
    is_for_one_turn: bool
    """Whether Keryx answers once and ends, so that no later turn can have tools that are listed late."""

    @property
    def workspaces(self) -> Workspaces:
        """The workspaces of sessions."""
        return Workspaces(
            default=self.configuration.workspace or Path.cwd(),
            kept_out=(self.configuration.config_dir, self.configuration.data_dir),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeTools:
    """Tools that are always available, and those that come and go."""

    tools: Sequence[Tool] = ()
    source: ToolSource | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPlugin(Plugin):
    """Tools that belong together."""

    make: Callable[[ToolContext], MadeTools]
