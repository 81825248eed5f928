"""Records what background processes do by themselves: that they ended or were lost, wrote a watched text, still run.

Several may watch the same folder at once, a gateway and a terminal: whatever is recorded is recorded once. A look costs
what runs here, and what ended within half an hour, never what ran before.
"""

import asyncio
from dataclasses import field
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
"""How often it is looked at what runs."""
IDLE_SECONDS: Final = 5.0
"""How often, while nothing runs, it is looked whether somebody else's process is left to watch."""
SCAN_BYTES: Final = 1_000_000
LINE_BYTES_MAX: Final = 10_000
"""How much of a line that goes on is looked at again with what follows."""


@dataclass(slots=True, kw_only=True)
class _Watched:
    """A process of a folder here, as far as it was watched."""

    process: Process
    scanned: int = 0
    told: set[str] = field(default_factory=set)
    noticed_at: Micros = 0

    @property
    def notice(self) -> NoticePolicy:
        """What is left to be told."""
        wish = self.process.notice
        return NoticePolicy(
            on_exit=wish.on_exit,
            patterns=tuple(each for each in wish.patterns if each not in self.told),
            every_minutes=wish.every_minutes,
        )


class Watcher:
    """Watches the processes of one data folder."""

    def __init__(self, database: Database, backend: ProcessBackend, *, clock: Clock) -> None:
        self._database = database
        self._backend = backend
        self._clock = clock
        self._watched: dict[str, _Watched] = {}

    async def run_once(self) -> None:
        """Look at everything; while nothing runs, return only when it is worth looking again."""
        self._backend.started.clear()
        if not await self.look():
            try:
                async with asyncio.timeout(IDLE_SECONDS):
                    await self._backend.started.wait()
            except TimeoutError:
                pass

    async def look(self) -> bool:
        """Record what happened since the last look; say whether anything runs here."""
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
            # Of nobody's folder, which a crash left or another store has, only its last change is known.
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
            await self._tell_progress(watched, folder)

    async def _find(self, name: str) -> _Watched | None:
        process = await self._database.read(lambda tx: find_in_folder(tx, name))
        if process is None:
            return None
        watched = self._watched[name] = _Watched(process=process, noticed_at=process.started_at)
        return watched

    async def _scan(self, watched: _Watched, folder: ProcessFolder) -> None:
        """Tell of the first line with each watched text."""
        if not watched.notice.patterns:
            return
        watched.scanned, found = await asyncio.to_thread(scan, folder, watched.scanned, watched.notice)
        for pattern, line in found.items():
            told = output_text(line.encode(), has_pty=bool(watched.process.has_pty))
            await self._database.write(
                partial(record_pattern, process_id=watched.process.id, pattern=pattern, line=told)
            )
            watched.told.add(pattern)

    async def _tell_progress(self, watched: _Watched, folder: ProcessFolder) -> None:
        notice, now, began_at = watched.notice, self._clock.now(), watched.process.started_at
        if notice.every_minutes is None or not notice.periodic_due(
            last_notice_at=watched.noticed_at, now=now
        ):
            return
        number = (now - began_at) // (notice.every_minutes * MINUTE)
        output = await asyncio.to_thread(folder.read, start=None, bytes_max=TAIL_BYTES)
        tail = output_text(output.data, has_pty=bool(watched.process.has_pty))
        await self._database.write(
            lambda tx: record_progress(tx, watched.process.id, number=number, tail=tail)
        )
        watched.noticed_at = began_at + number * notice.every_minutes * MINUTE


def scan(folder: ProcessFolder, start: int, notice: NoticePolicy) -> tuple[int, dict[str, str]]:
    """Look for watched texts in the output from ``start`` on; return where to go on, and the first line with each."""
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
    """Return where the line begins that goes on after ``end``, or not much before that."""
    return end - min(len(data.rpartition(b"\n")[2]), LINE_BYTES_MAX)
