"""The contract of a process backend plug-in: its settings, and how the backend is made.

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
    """The arguments for making a backend."""

    configuration: Configuration
    database: Database
    folder: Path
    """The place of a folder for each process that runs or has ended recently."""
    clock: Clock
    ids: Ids


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendPlugin(Plugin):
    """One process backend."""

    make: Callable[[BackendContext], ProcessBackend]
