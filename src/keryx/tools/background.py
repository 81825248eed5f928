"""What tools know of background processes: how one is started, read, written to and ended.

Who does it stands above the tools, and is given to them.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from keryx.domain.process import NoticePolicy
from keryx.values import dataclass
from keryx.views.processes import Process


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
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


class Background(Protocol):
    """Background processes; each call raises ``ToolFailed`` with the reason where it cannot be done here."""

    async def start(self, job: Job, *, session_id: str, person_id: int) -> int:
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
