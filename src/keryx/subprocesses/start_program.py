"""Start a program that answers turns, with its own environment, and end it with everything it started.

The program leads its own process group. The caller that starts it must end it, so that no process is left behind.
"""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import IO, Final

from keryx.errors import AgentFailed
from keryx.subprocesses.run_program import signal_group
from keryx.values import dataclass

LINE_BYTES_MAX: Final = 50 * 1024 * 1024
"""The maximum length of an output line: an image in base64 is one line."""
ERRORS_BYTES_MAX: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSettings:
    """The program to start, and its folder."""

    command: Sequence[str]
    folder: Path
    """Its working folder, unless the conversation has a workspace; a missing folder is created."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    start_seconds: float = 60.0
    cancel_seconds: float = 10.0
    """The time limit for the end of a prompt that was cancelled."""

    @property
    def name(self) -> str:
        """Its name for people."""
        return Path(self.command[0]).name


class RunningProgram:
    """A process that was started."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self.stdin = process.stdin
        self.stdout = process.stdout
        self.stderr = process.stderr

    async def wait(self) -> int:
        """Wait for its end and return its exit code."""
        return await self._process.wait()

    async def end(self, *, seconds: float) -> None:
        """End it and everything it started: close its input, then send SIGTERM, then SIGKILL, waiting between them."""
        with suppress(OSError, RuntimeError):
            self.stdin.close()
        try:
            for number in (0, signal.SIGTERM):  # 0 sends no signal
                signal_group(self._process.pid, number)
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await self._process.wait()
                        return
        finally:
            # Its children may outlive it, and a cancelled caller must leave no process behind.
            signal_group(self._process.pid, signal.SIGKILL)
        await self._process.wait()

    async def stop(self, *, seconds: float) -> None:
        """End it and everything it started with SIGTERM, and with SIGKILL if it does not end in time."""
        signal_group(self._process.pid, signal.SIGTERM)
        await self.end(seconds=seconds)


async def start_program(
    settings: ProgramSettings,
    *,
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
    errors: IO[bytes] | None = None,
) -> RunningProgram:
    """Start a program, or raise ``AgentFailed``; its error output goes to ``errors``, or else to ``stderr``."""
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
            f"the program {settings.name!r} that should answer cannot be started ({error.strerror}); "
            "see agent.acp and agent.command in the configuration."
        ) from error
    return RunningProgram(process)


def open_errors(path: Path) -> IO[bytes]:
    """Open the file for a program's error output. Only its owner may read it; a file that is too large is emptied."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    with suppress(FileNotFoundError):
        if path.stat().st_size > ERRORS_BYTES_MAX:
            flags |= os.O_TRUNC
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.fdopen(os.open(path, flags, 0o600), "wb")
