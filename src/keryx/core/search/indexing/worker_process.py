"""Starts and stops a worker process that indexes a large backlog without taking interpreter time from writes.

``worker`` is the code of that process. The database's own locks protect the index, so several processes may index at
the same time.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Final

from keryx.errors import StoreUnavailable

WORKER: Final = "keryx.core.search.indexing.worker"


class IndexWorker:
    """A running worker process, seen from its parent."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, address: str | Path) -> "IndexWorker":
        """Start a worker for the store at ``address``. Raises ``StoreUnavailable`` if that fails."""
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                WORKER,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                # Ctrl-C at the terminal is for the program. The worker ends when its input ends.
                start_new_session=True,
            )
        except OSError as error:
            raise StoreUnavailable(f"No process could be started for the search index: {error}") from error
        worker = cls(process)
        try:
            # Sent through the pipe and not as an argument, because an address may hold a password.
            await worker._ask(json.dumps(str(address)))
        except BaseException:
            # The worker has done nothing yet, and may be busy with an attempt to open the store.
            process.kill()
            await worker.stop()
            raise
        return worker

    async def catch_up(self) -> None:
        """Index the whole backlog. Raises ``StoreUnavailable`` if the worker is gone or fails."""
        await self._ask("")

    async def stop(self) -> None:
        """End the worker after its current step."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()

    async def _ask(self, line: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            await self._process.stdin.drain()
            answer = await self._process.stdout.readline()
        except (BrokenPipeError, ConnectionResetError):
            answer = b""
        if answer != b"done\n":
            reason = answer.decode().strip() or "the process has ended"
            raise StoreUnavailable(f"The worker process of the search index failed: {reason}")
