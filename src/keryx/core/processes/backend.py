"""What tools and the gateway know of a process backend, which runs background processes.

Tools start, read, write to and end processes. The gateway watches them. A backend is a plug-in above both contracts.
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
    import asyncio  # for a type alone: whoever reads the settings needs no event loop

TAIL_BYTES: Final = 4_000
"""How much is read for the end of the output that a session is told; see ``record_process``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundCommand:
    """A command that is to go on while others do: where, with what, and when its session hears of it."""

    command: str
    folder: Path
    environment: Mapping[str, str]
    has_pty: bool
    notice: NoticePolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A piece of what a process wrote."""

    data: bytes
    start: int
    """The place of its first byte in all that was written."""
    total: int
    """How much was written, kept or not."""
    kept_from: int = 0
    """The place from which on it is kept."""

    @property
    def end(self) -> int:
        """The place after its last byte."""
        return self.start + len(self.data)

    def first(self, lines: int) -> "Output":
        """Return the first lines of it."""
        return replace(self, data=b"".join(self.data.splitlines(keepends=True)[:lines]))

    def last(self, lines: int) -> "Output":
        """Return the last lines of it."""
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
    """What a backend keeps of one process. Each call blocks for a moment: call it in a thread."""

    def see(self) -> Sight | None:
        """Return the folder's state; None where there is no such folder."""

    def read(self, *, start: int | None, bytes_max: int) -> Output:
        """Return at most ``bytes_max`` of the output, from ``start`` on or else its end."""

    def remove(self) -> None:
        """Remove the folder with everything in it."""


class Background(Protocol):
    """Background processes; each call raises ``ToolFailed`` with the reason where it cannot be done here."""

    async def start(self, job: BackgroundCommand, *, session_id: str, person_id: int) -> int:
        """Start a process of a session and return its number."""

    async def settle(self, process: Process) -> None:
        """Record how a process of this machine ended, if it has."""

    async def read(self, process: Process, *, start: int | None, bytes_max: int) -> Output:
        """Return what it wrote from ``start`` on, or the end of it; so much at most."""

    async def write(self, process: Process, data: bytes) -> None:
        """Give it something to read."""

    async def close_input(self, process: Process) -> None:
        """Let its input end."""

    async def kill(self, process: Process) -> None:
        """End it with everything it started; returns when that is recorded."""


class ProcessBackend(Background, Protocol):
    """Runs background processes, and lets the gateway watch those of this data folder."""

    @property
    def started(self) -> "asyncio.Event":
        """Set when a process was started here. The watcher clears it."""

    def names(self) -> Sequence[str]:
        """Return the names of all folders here. Blocks for a moment."""

    def folder(self, name: str) -> ProcessFolder:
        """Return the folder of this name, whether it exists or not."""
