"""Start background processes on this machine, find them again, and read and write them.

A process is recorded before anything is spawned. Its supervisor gets the command only after its pid is recorded. So a
crash leaves a row that becomes lost, and never an unknown process. A process without a folder here runs on another
machine; nothing is guessed about it.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from keryx.backends.local.folder import Folder, StartingSupervisor, SupervisorGone, SupervisorSilent
from keryx.backends.local.supervisor import protocol
from keryx.clock import Clock
from keryx.core.processes.backend import TAIL_BYTES, BackgroundCommand, Output
from keryx.core.processes.transactions.record_process import (
    NewProcess,
    ProcessAlreadyEnded,
    record_end,
    record_spawned,
    record_started,
)
from keryx.core.processes.views import Process
from keryx.errors import NotFound, StoreUnsafe, ToolFailed
from keryx.ids import Ids
from keryx.store.database import Database
from keryx.store.filesystem import refuse_network
from keryx.subprocesses.run_program import SHELL, at_terminal
from keryx.subprocesses.terminal_text import output_text
from keryx.values import dataclass

LOOK_SECONDS: Final = 0.05
ENDS_SECONDS: Final = 5.0
"""How long to wait for the end of a process after SIGKILL."""
NOT_POSIX: Final = "Background processes need Linux or macOS; leave 'background' out."
SILENT: Final = "Its supervisor does not answer; it is unknown whether anything was done. Try again."
ANSWERS: Final = {
    protocol.ENDED: "It has ended; poll tells how.",
    protocol.CLOSED: "Its input is closed; nothing can be written to it.",
    protocol.FULL: "It does not read what it was given; nothing more was written.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
    """The stored output of a process, and its time between SIGTERM and SIGKILL."""

    output_bytes_max: int = 16_000_000
    kill_seconds: float = 5.0


USUAL: Final = ProcessLimits()


class Registry:
    """The background processes of one data folder."""

    def __init__(
        self, database: Database, root: Path, *, clock: Clock, ids: Ids, limits: ProcessLimits = USUAL
    ) -> None:
        self._database = database
        self._root = root
        self._clock = clock
        self._ids = ids
        self._limits = limits
        self._starting: set[asyncio.Task[int]] = set()
        self.started = asyncio.Event()
        """Set when a process was started here; the watcher clears it."""

    async def start(self, job: BackgroundCommand, *, session_id: str, person_id: int) -> int:
        """Start a process of a session and return its number, or raise ``ToolFailed``.

        A caller that is cancelled meanwhile leaves it running: the process is started whole, or not at all.
        """
        starting = asyncio.create_task(self._start(job, session_id=session_id, person_id=person_id))
        self._starting.add(starting)
        starting.add_done_callback(self._starting.discard)
        return await asyncio.shield(starting)

    async def settle(self, process: Process) -> None:
        """Record the end of a process, if it has ended and its folder is here."""
        folder = self.find(process)
        if folder is None or process.state != "running":
            return
        sight = await asyncio.to_thread(folder.see)
        if sight is None or not sight.is_over:
            return
        output = await asyncio.to_thread(folder.read, start=None, bytes_max=TAIL_BYTES)
        ended = sight.ended
        end = partial(
            record_end,
            process_id=process.id,
            end="lost" if ended is None else "killed" if ended.was_killed else "exited",
            exit_code=None if ended is None or ended.was_killed else ended.exit_code,
            output_bytes=output.total if ended is None else ended.output_bytes,
            tail=output_text(output.data, has_pty=bool(process.has_pty)),
        )
        await self._database.write(end)

    async def read(self, process: Process, *, start: int | None, bytes_max: int) -> Output:
        """Return the output from ``start`` on, or its end, with at most so many bytes."""
        folder = await self._here(process)
        return await asyncio.to_thread(folder.read, start=start, bytes_max=bytes_max)

    async def write(self, process: Process, data: bytes) -> None:
        """Write to its input, or raise ``ToolFailed``."""
        await self._ask(process, protocol.WRITE + data)

    async def close_input(self, process: Process) -> None:
        """Close its input, or raise ``ToolFailed``; a terminal only gets the key for it, which a program may ignore."""
        await self._ask(process, protocol.CLOSE)

    async def kill(self, process: Process) -> None:
        """End it with everything it started; return when the end is recorded."""
        folder = await self._here(process)
        try:
            await asyncio.to_thread(folder.ask, protocol.KILL)
        except SupervisorGone:
            pass  # the process has ended or is lost; its record tells which
        except SupervisorSilent:
            raise ToolFailed(SILENT) from None
        for _ in range(round((self._limits.kill_seconds + ENDS_SECONDS) / LOOK_SECONDS)):
            sight = await asyncio.to_thread(folder.see)
            if sight is None or sight.is_over:
                await self.settle(process)
                return
            await asyncio.sleep(LOOK_SECONDS)  # the file of another process has no event
        raise ToolFailed(
            "It was asked to end and then made to, and has not ended yet; poll tells when it has."
        )

    def names(self) -> Sequence[str]:
        """Return the names of all folders here."""
        try:
            with os.scandir(self._root) as found:
                return sorted(each.name for each in found if each.is_dir())
        except FileNotFoundError:
            return []

    def folder(self, name: str) -> Folder:
        """Return the folder of this name."""
        return Folder(self._root / name)

    def find(self, process: Process) -> Folder | None:
        """Return the folder of a process, which may be deleted; None if it never was here."""
        return None if process.folder is None else self.folder(process.folder)

    async def _start(self, job: BackgroundCommand, *, session_id: str, person_id: int) -> int:
        await asyncio.to_thread(self._check)
        folder = self.folder(self._ids.token())
        new = NewProcess(
            command=job.command,
            workspace=str(job.folder),
            has_pty=job.has_pty,
            notice=job.notice,
            host=socket.gethostname(),
            folder=folder.path.name,
        )
        with ExitStack() as held:
            lock = await asyncio.to_thread(held.enter_context, folder.made())
            try:
                number = await self._database.write(
                    lambda tx: record_started(tx, new, session_id=session_id, person_id=person_id)
                )
            except NotFound as error:
                raise ToolFailed(str(error)) from error
            await self._spawn(number, job, folder, lock)
        self.started.set()
        return number

    async def _spawn(self, number: int, job: BackgroundCommand, folder: Folder, lock: int) -> None:
        try:
            starting = await asyncio.to_thread(
                StartingSupervisor, folder, lock=lock, environment=dict(job.environment)
            )
        except (OSError, ValueError) as error:
            await self._database.write(lambda tx: record_end(tx, number, "killed"))
            raise ToolFailed(f"It could not be started: {error}.") from error
        try:
            began_at, boot_id = starting.began_at or self._clock.now(), self._clock.boot_id()
            spawned = await self._database.write(
                lambda tx: record_spawned(
                    tx, number, pid=starting.pid, pid_started_at=began_at, machine_boot_id=boot_id
                )
            )
            if isinstance(spawned, ProcessAlreadyEnded):
                raise ToolFailed("It was not started: it was ended before.")
            await asyncio.to_thread(starting.send, self._command(job))
        finally:
            starting.leave()

    def _command(self, job: BackgroundCommand) -> protocol.SupervisedCommand:
        """Return the command for the supervisor; another backend would differ here."""
        arguments = [SHELL, "-c", job.command]
        return protocol.SupervisedCommand(
            arguments=at_terminal(arguments) if job.has_pty else arguments,
            workdir=str(job.folder),
            environment=dict(job.environment),
            has_pty=job.has_pty,
            output_bytes_max=self._limits.output_bytes_max,
            kill_seconds=self._limits.kill_seconds,
        )

    def _check(self) -> None:
        """Raise ``ToolFailed`` if locks do not work here."""
        if sys.platform == "win32":
            raise ToolFailed(NOT_POSIX)
        try:
            refuse_network(self._root.parent)
        except StoreUnsafe:
            raise ToolFailed(
                f"Background processes need a data folder on a local disk; {self._root.parent} is on a network."
            ) from None

    async def _here(self, process: Process) -> Folder:
        """Return the folder of a process, or raise ``ToolFailed`` with the place of the process."""
        folder = self.find(process)
        if folder is not None and await asyncio.to_thread(folder.path.is_dir):
            return folder
        if process.state != "running":
            raise ToolFailed("Its output is gone: it is kept for half an hour after the end, where it ran.")
        machine = "an unknown machine" if process.host is None else f"the machine {process.host}"
        other = " with another data folder" if process.host == socket.gethostname() else ""
        raise ToolFailed(f"It runs on {machine}{other}; only there it can be reached.")

    async def _ask(self, process: Process, request: bytes) -> None:
        folder = await self._here(process)
        try:
            answer = await asyncio.to_thread(folder.ask, request)
        except SupervisorGone:
            answer = protocol.ENDED
        except SupervisorSilent:
            raise ToolFailed(SILENT) from None
        if answer != protocol.DONE:
            raise ToolFailed(ANSWERS[answer])
