"""What a plug-in of a process backend brings: its settings, and how the backend is made.

The backend ``<name>`` runs background processes where a setting below ``backends.<name>`` has a value; else the default
backend does.
"""

from collections.abc import Callable
from pathlib import Path

from keryx.clock import Clock
from keryx.config import Configuration, Plugin
from keryx.core.processes.backend import ProcessBackend
from keryx.ids import Ids
from keryx.store.database import Database
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendContext:
    """What a backend is made with."""

    configuration: Configuration
    database: Database
    folder: Path
    """Where it keeps a folder for each process that runs, or ended not long ago."""
    clock: Clock
    ids: Ids


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendPlugin(Plugin):
    """One process backend."""

    make: Callable[[BackendContext], ProcessBackend]
