"""Starts background processes on this machine, finds them again, and reads and writes them.

A process is recorded before anything is spawned, and its supervisor is told what to run only when it is recorded by
what it is found again. So a crash leaves a row that becomes lost, and never a process nobody knows of. Whose folder is
not here runs elsewhere, or did; nothing is guessed about it.
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

from keryx.clock import Clock
from keryx.errors import NotFound, StoreUnsafe
from keryx.ids import Ids
from keryx.processes import supervisor
from keryx.processes.folder import Folder, Gone, Silent, Waiting
from keryx.store.database import Database
from keryx.store.filesystem import refuse_network
from keryx.tools.background import Job, Output
from keryx.tools.running import at_terminal
from keryx.tools.terminal import SHELL
from keryx.tools.terminal_text import plain_text
from keryx.tools.tool import ToolFailed
from keryx.transactions.record_process import (
    AlreadyEnded,
    NewProcess,
    record_end,
    record_spawned,
    record_started,
)
from keryx.values import dataclass
from keryx.views.processes import Process

TAIL_BYTES: Final = 4_000
"""What is read for the end of the output that a session is told; see ``record_process``."""
LOOK_SECONDS: Final = 0.05
ENDS_SECONDS: Final = 5.0
"""How long it may take until a process is gone that was made to end."""
NOT_POSIX: Final = "Background processes need Linux or macOS; leave 'background' out."
SILENT: Final = "Its supervisor does not answer; nothing is known to be done. Try again."
ANSWERS: Final = {
    supervisor.ENDED: "It has ended; poll tells how.",
    supervisor.CLOSED: "Its input is closed; nothing can be written to it.",
    supervisor.FULL: "It does not read what it was given; nothing more was written.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of a process's output is kept, and how long one that is killed may tidy up."""

    output_bytes_max: int = 16_000_000
    kill_seconds: float = 5.0


USUAL: Final = Limits()


class Registry:
    """The background processes of one data folder."""

    def __init__(
        self, database: Database, root: Path, *, clock: Clock, ids: Ids, limits: Limits = USUAL
    ) -> None:
        self._database = database
        self._root = root
        self._clock = clock
        self._ids = ids
        self._limits = limits
        self._starting: set[asyncio.Task[int]] = set()
        self.started = asyncio.Event()
        """Set when a process was started here; whoever watches them clears it."""

    async def start(self, job: Job, *, session_id: str, person_id: int) -> int:
        """Start a process of a session and return its number, or raise ``ToolFailed``.

        Whoever is stopped meanwhile leaves it running: it is started whole, or not at all.
        """
        starting = asyncio.create_task(self._start(job, session_id=session_id, person_id=person_id))
        self._starting.add(starting)
        starting.add_done_callback(self._starting.discard)
        return await asyncio.shield(starting)

    async def settle(self, process: Process) -> None:
        """Record how a process ended, if it has and its folder is here."""
        folder = self.find(process)
        if folder is None or process.state != "running":
            return
        sight = await asyncio.to_thread(folder.see)
        if sight is None or not sight.is_over:
            return
        output = await asyncio.to_thread(folder.read, start=None, bytes_max=TAIL_BYTES)
        ended = sight.ended
        end = partial(record_end, process_id=process.id, tail=tail_of(process, output.data))
        if ended is None:
            await self._database.write(lambda tx: end(tx, end="lost", output_bytes=output.total))
        elif ended.was_killed:
            await self._database.write(lambda tx: end(tx, end="killed", output_bytes=ended.output_bytes))
        else:
            await self._database.write(
                lambda tx: end(tx, end="exited", exit_code=ended.exit_code, output_bytes=ended.output_bytes)
            )

    async def read(self, process: Process, *, start: int | None, bytes_max: int) -> Output:
        """Return what it wrote from ``start`` on, or the end of it; so much at most."""
        folder = await self._here(process)
        return await asyncio.to_thread(folder.read, start=start, bytes_max=bytes_max)

    async def write(self, process: Process, data: bytes) -> None:
        """Give it something to read, or raise ``ToolFailed``."""
        await self._ask(process, supervisor.WRITE + data)

    async def close_input(self, process: Process) -> None:
        """Let its input end, or raise ``ToolFailed``; a terminal's does so by a key, which the program may not mind."""
        await self._ask(process, supervisor.CLOSE)

    async def kill(self, process: Process) -> None:
        """End it with everything it started; returns when that is recorded."""
        folder = await self._here(process)
        try:
            await asyncio.to_thread(folder.ask, supervisor.KILL)
        except Gone:
            pass  # it has ended, or is lost: what is recorded tells
        except Silent:
            raise ToolFailed(SILENT) from None
        for _ in range(round((self._limits.kill_seconds + ENDS_SECONDS) / LOOK_SECONDS)):
            sight = await asyncio.to_thread(folder.see)
            if sight is None or sight.is_over:
                await self.settle(process)
                return
            await asyncio.sleep(LOOK_SECONDS)  # another process's file has no event
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
        """Return the folder of a process, which may be gone; None where it never was here."""
        return None if process.folder is None else self.folder(process.folder)

    async def _start(self, job: Job, *, session_id: str, person_id: int) -> int:
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

    async def _spawn(self, number: int, job: Job, folder: Folder, lock: int) -> None:
        try:
            waiting = await asyncio.to_thread(Waiting, folder, lock=lock, environment=dict(job.environment))
        except (OSError, ValueError) as error:
            await self._database.write(lambda tx: record_end(tx, number, "killed"))
            raise ToolFailed(f"It could not be started: {error}.") from error
        try:
            began_at, boot_id = waiting.began_at or self._clock.now(), self._clock.boot_id()
            spawned = await self._database.write(
                lambda tx: record_spawned(
                    tx, number, pid=waiting.pid, pid_started_at=began_at, machine_boot_id=boot_id
                )
            )
            if isinstance(spawned, AlreadyEnded):
                raise ToolFailed("It was not started: somebody ended it before.")
            await asyncio.to_thread(waiting.tell, self._told(job))
        finally:
            waiting.leave()

    def _told(self, job: Job) -> supervisor.Job:
        """Return what the supervisor is told: here is the place where other backends differ."""
        arguments = [SHELL, "-c", job.command]
        return supervisor.Job(
            arguments=at_terminal(arguments) if job.has_pty else arguments,
            workdir=str(job.folder),
            environment=dict(job.environment),
            has_pty=job.has_pty,
            output_bytes_max=self._limits.output_bytes_max,
            kill_seconds=self._limits.kill_seconds,
        )

    def _check(self) -> None:
        """Raise ``ToolFailed`` where locks do not tell who lives."""
        if sys.platform == "win32":
            raise ToolFailed(NOT_POSIX)
        try:
            refuse_network(self._root.parent)
        except StoreUnsafe:
            raise ToolFailed(
                f"Background processes need a data folder on a local disk; {self._root.parent} is on a network."
            ) from None

    async def _here(self, process: Process) -> Folder:
        """Return the folder of a process, or raise ``ToolFailed`` with where that is."""
        folder = self.find(process)
        if folder is not None and await asyncio.to_thread(folder.path.is_dir):
            return folder
        if process.state != "running":
            raise ToolFailed("Its output is gone: it is kept for half an hour after the end, where it ran.")
        raise ToolFailed(f"It runs {where(process)}; only there it can be reached.")

    async def _ask(self, process: Process, request: bytes) -> None:
        folder = await self._here(process)
        try:
            answer = await asyncio.to_thread(folder.ask, request)
        except Gone:
            answer = supervisor.ENDED
        except Silent:
            raise ToolFailed(SILENT) from None
        if answer != supervisor.DONE:
            raise ToolFailed(ANSWERS[answer])


def where(process: Process) -> str:
    """Return in words where a process runs whose folder is not here."""
    if process.host is None:
        return "where nobody noted it"
    other = " with another data folder" if process.host == socket.gethostname() else ""
    return f"on the machine {process.host}{other}"


def tail_of(process: Process, data: bytes) -> str:
    """Return the end of the output as it is told to a session."""
    text = data.decode("utf-8", "replace")
    return plain_text(text) if process.has_pty else text
