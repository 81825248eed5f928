"""A program of somebody else's that answers for us: started with its own environment, ended with all it started.

It leads a process group of its own, and whoever starts it ends it: nothing of it is left behind.
"""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import IO, Final

from keryx.agents.agent import AgentFailed
from keryx.values import dataclass

LINE_BYTES_MAX: Final = 50 * 1024 * 1024
"""The longest line it may write: an image in base64 is one."""
ERRORS_BYTES_MAX: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSettings:
    """What is started, and where."""

    command: Sequence[str]
    folder: Path
    """Where it works, unless a conversation has a workspace; made where it is missing."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    start_seconds: float = 60.0
    """How long it may take until it answers for the first time."""
    cancel_seconds: float = 10.0
    """How long it may take to end what it is told to leave."""

    @property
    def name(self) -> str:
        """What people know it by."""
        return Path(self.command[0]).name


class Program:
    """One process that was started."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self.stdin = process.stdin
        self.stdout = process.stdout
        self.stderr = process.stderr

    @property
    def code(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.returncode

    async def wait(self) -> int:
        """Return how it ended, when it has."""
        return await self._process.wait()

    async def end(self, *, seconds: float) -> None:
        """End it and all it started: by closing its input, then by a signal, then by force, so long after each."""
        with suppress(OSError, RuntimeError):
            self.stdin.close()
        try:
            for number in (None, signal.SIGTERM):
                if number is not None:
                    self._signal(number)
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await self._process.wait()
                        return
        finally:
            # What it started may outlive it, and a cancelled caller must not leave either.
            self._signal(signal.SIGKILL)
        await self._process.wait()

    async def stop(self, *, seconds: float) -> None:
        """End it and all it started by a signal, and by force if that does not help in time."""
        self._signal(signal.SIGTERM)
        await self.end(seconds=seconds)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


async def start_program(
    settings: ProgramSettings,
    *,
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
    errors: IO[bytes] | None = None,
) -> Program:
    """Start it; what it complains of goes to ``errors``, else it can be read. Raise ``AgentFailed`` if it cannot be."""
    where = settings.folder if folder is None else folder
    try:
        await asyncio.to_thread(where.mkdir, mode=0o700, parents=True, exist_ok=True)
        process = await asyncio.create_subprocess_exec(
            *settings.command,
            cwd=where,
            env={**settings.environment, **(variables or {})},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE if errors is None else errors,
            limit=LINE_BYTES_MAX,
            start_new_session=True,
        )
    except OSError as error:
        raise AgentFailed(
            f"the program {settings.name!r} that shall answer cannot be started ({error.strerror}); "
            "see agent.acp and agent.command in the configuration."
        ) from error
    return Program(process)


def open_errors(path: Path) -> IO[bytes]:
    """Return a file for a program's complaints, which only its owner may read; one that is big begins anew."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    with suppress(FileNotFoundError):
        if path.stat().st_size > ERRORS_BYTES_MAX:
            flags |= os.O_TRUNC
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.fdopen(os.open(path, flags, 0o600), "wb")
