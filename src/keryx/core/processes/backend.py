"""The contracts of a process backend, a plug-in that runs background processes.

Tools start, read, write to and end processes through ``Background``. The gateway watches them as a ``ProcessBackend``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from keryx.clock import Micros
from keryx.core.processes.rules import NoticePolicy
from keryx.core.processes.views import Process
from keryx.values import dataclass

if TYPE_CHECKING:
    import asyncio  # only for a type: reading the settings must not load it

TAIL_BYTES: Final = 4_000
"""How much of the end of the output is read for an inbox item; see ``record_process``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundCommand:
    """A command to run in the background, and when its session gets notices about it."""

    command: str
    folder: Path
    environment: Mapping[str, str]
    has_pty: bool
    notice: NoticePolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A piece of a process's output."""

    data: bytes
    start: int
    """The offset of its first byte in the whole output."""
    total: int
    """The length of the whole output, including parts that were deleted."""
    kept_from: int = 0
    """The offset of the first byte that is still kept."""

    @property
    def end(self) -> int:
        """The offset after its last byte."""
        return self.start + len(self.data)

    def first(self, lines: int) -> "Output":
        """Return its first lines."""
        return replace(self, data=b"".join(self.data.splitlines(keepends=True)[:lines]))

    def last(self, lines: int) -> "Output":
        """Return its last lines."""
        data = b"".join(self.data.splitlines(keepends=True)[-lines:])
        return replace(self, data=data, start=self.end - len(data))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a process ended."""

    exit_code: int
    was_killed: bool
    output_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """The state of a process's folder at one moment."""

    is_held: bool
    """Whether the process's starter or supervisor lives."""
    ended: Ended | None
    changed_at: Micros

    @property
    def is_over(self) -> bool:
        """Whether the process has ended, or is lost."""
        return self.ended is not None or not self.is_held


class ProcessFolder(Protocol):
    """The folder of one process. Each call blocks for a moment: call it in a thread."""

    def see(self) -> Sight | None:
        """Return the folder's state, or None if it does not exist."""

    def read(self, *, start: int | None, bytes_max: int) -> Output:
        """Return at most ``bytes_max`` of the output: from ``start`` on, or else its end."""

    def remove(self) -> None:
        """Remove the folder with everything in it."""


class Background(Protocol):
    """Background processes; a call that fails raises ``ToolFailed`` with the reason."""

    async def start(self, job: BackgroundCommand, *, session_id: str, person_id: int) -> int:
        """Start a process of a session and return its number."""

    async def settle(self, process: Process) -> None:
        """Record the end of a process of this machine, if it has ended."""

    async def read(self, process: Process, *, start: int | None, bytes_max: int) -> Output:
        """Return at most ``bytes_max`` of the output: from ``start`` on, or else its end."""

    async def write(self, process: Process, data: bytes) -> None:
        """Write to the process's input."""

    async def close_input(self, process: Process) -> None:
        """Close the process's input."""

    async def kill(self, process: Process) -> None:
        """Kill the process and its children; return when this is recorded."""


class ProcessBackend(Background, Protocol):
    """Runs background processes, and shows the gateway the processes of this data folder."""

    @property
    def started(self) -> "asyncio.Event":
        """An event that is set when a process starts. The watcher clears it."""

    def names(self) -> Sequence[str]:
        """Return the names of all process folders. Blocks for a moment."""

    def folder(self, name: str) -> ProcessFolder:
        """Return the folder of this name, whether it exists or not."""
