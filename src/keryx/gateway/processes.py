"""Watch background processes, and record their ends, the watched texts in their output, and their progress.

A gateway and a terminal may watch the same data folder at once; each fact is recorded once. A look reads only processes
that run or that ended within half an hour.
"""

import asyncio
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from typing import Final

from keryx.clock import MINUTE, Clock, Micros
from keryx.core.processes.backend import TAIL_BYTES, ProcessBackend, ProcessFolder, Sight
from keryx.core.processes.rules import NoticePolicy, output_kept
from keryx.core.processes.transactions.record_process import record_pattern, record_progress
from keryx.core.processes.views import Process, find_in_folder
from keryx.store.database import Database
from keryx.subprocesses.terminal_text import output_text
from keryx.values import dataclass

WATCH_SECONDS: Final = 0.5
"""How often to look while processes run."""
IDLE_SECONDS: Final = 5.0
"""How often to look while no process runs: another program may have left a process to watch."""
SCAN_BYTES: Final = 1_000_000
LINE_BYTES_MAX: Final = 10_000
"""How much of an unfinished line is searched again together with its continuation."""


@dataclass(slots=True, kw_only=True)
class _Watched:
    """A process, and how far its output was searched and reported."""

    process: Process
    scanned: int = 0
    reported: set[str] = field(default_factory=set)
    """The patterns that were found and reported."""
    progress_at: Micros = 0
    """The time of the last progress notice."""

    @property
    def notice(self) -> NoticePolicy:
        """The notices that are still to come."""
        policy = self.process.notice
        return replace(policy, patterns=tuple(each for each in policy.patterns if each not in self.reported))


class ProcessWatcher:
    """Watches the processes of one data folder."""

    def __init__(self, database: Database, backend: ProcessBackend, *, clock: Clock) -> None:
        self._database = database
        self._backend = backend
        self._clock = clock
        self._watched: dict[str, _Watched] = {}

    async def run_once(self) -> None:
        """Look at all processes. While no process runs, return only when it is time to look again."""
        self._backend.started.clear()
        if not await self.look():
            with suppress(TimeoutError):
                async with asyncio.timeout(IDLE_SECONDS):
                    await self._backend.started.wait()

    async def look(self) -> bool:
        """Record everything since the last look; return whether a process runs here."""
        names = await asyncio.to_thread(self._backend.names)
        for name in self._watched.keys() - set(names):
            del self._watched[name]
        is_busy = False
        for name in names:
            folder = self._backend.folder(name)
            sight = await asyncio.to_thread(folder.see)
            if sight is not None:
                await self._look_at(name, folder, sight)
                is_busy = is_busy or sight.is_held
        return is_busy

    async def _look_at(self, name: str, folder: ProcessFolder, sight: Sight) -> None:
        watched = self._watched.get(name) or await self._find(name)
        if watched is None or watched.process.state != "running":
            # A folder without a row is left by a crash, or belongs to another store: only its last change is known.
            ended_at = sight.changed_at if watched is None else watched.process.ended_at
            if not sight.is_held and not output_kept(ended_at=ended_at, now=self._clock.now()):
                await asyncio.to_thread(folder.remove)
            return
        if sight.ended is None or not sight.ended.was_killed:
            await self._scan(watched, folder)
        if sight.is_over:
            await self._backend.settle(watched.process)
            await self._find(name)
        else:
            await self._report_progress(watched, folder)

    async def _find(self, name: str) -> _Watched | None:
        process = await self._database.read(lambda tx: find_in_folder(tx, name))
        if process is None:
            return None
        watched = self._watched[name] = _Watched(process=process, progress_at=process.started_at)
        return watched

    async def _scan(self, watched: _Watched, folder: ProcessFolder) -> None:
        """Report the first line with each watched text."""
        if not watched.notice.patterns:
            return
        watched.scanned, found = await asyncio.to_thread(scan, folder, watched.scanned, watched.notice)
        for pattern, line in found.items():
            text = output_text(line.encode(), has_pty=bool(watched.process.has_pty))
            await self._database.write(
                partial(record_pattern, process_id=watched.process.id, pattern=pattern, line=text)
            )
            watched.reported.add(pattern)

    async def _report_progress(self, watched: _Watched, folder: ProcessFolder) -> None:
        process, now = watched.process, self._clock.now()
        policy = process.notice
        if policy.every_minutes is None or not policy.periodic_due(
            last_notice_at=watched.progress_at, now=now
        ):
            return
        interval = policy.every_minutes * MINUTE
        number = (now - process.started_at) // interval
        output = await asyncio.to_thread(folder.read, start=None, bytes_max=TAIL_BYTES)
        tail = output_text(output.data, has_pty=bool(process.has_pty))
        await self._database.write(lambda tx: record_progress(tx, process.id, number=number, tail=tail))
        watched.progress_at = process.started_at + number * interval


def scan(folder: ProcessFolder, start: int, notice: NoticePolicy) -> tuple[int, dict[str, str]]:
    """Search the output from ``start`` on; return the next start, and the first line with each watched text."""
    found: dict[str, str] = {}
    while True:
        output = folder.read(start=start, bytes_max=SCAN_BYTES)
        for line in output.data.decode("utf-8", "replace").split("\n"):
            for pattern in notice.patterns_in(line):
                found.setdefault(pattern, line)
        if output.end >= output.total or not output.data:
            break
        start = _line_start(output.data, output.end)
    return _line_start(output.data, output.end), found


def _line_start(data: bytes, end: int) -> int:
    """Return the start of the line that is unfinished at ``end``, at most ``LINE_BYTES_MAX`` before."""
    return end - min(len(data.rpartition(b"\n")[2]), LINE_BYTES_MAX)
