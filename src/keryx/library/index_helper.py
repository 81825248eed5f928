"""A process of its own for indexing much at once: there it takes no interpreter time from the writes.

This end starts it, asks for rounds, and ends it by closing its input; ``index_worker`` is the other end. The index is
written under the database's own locks, so whoever else indexes at the same time does no harm.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Final

from keryx.errors import StoreUnavailable

WORKER: Final = "keryx.library.index_worker"


class IndexHelper:
    """The parent's end."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, address: str | Path) -> "IndexHelper":
        """Start the process for the store at ``address``; raises ``StoreUnavailable`` where it cannot be."""
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                WORKER,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                # Ctrl-C at the terminal is for the program; this one ends when its input does.
                start_new_session=True,
            )
        except OSError as error:
            raise StoreUnavailable(f"No process could be started for the search index: {error}") from error
        helper = cls(process)
        try:
            # By the pipe and not as an argument, because an address may hold a password.
            await helper._ask(json.dumps(str(address)))
        except BaseException:
            # It has done nothing yet, and may be busy finding out that it cannot.
            process.kill()
            await helper.stop()
            raise
        return helper

    async def catch_up(self) -> None:
        """Index everything there is; raises ``StoreUnavailable`` when the process is gone or cannot."""
        await self._ask("")

    async def stop(self) -> None:
        """Let the process end after the step it is in."""
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
            raise StoreUnavailable(
                f"The search index's own process failed: {answer.decode().strip() or 'it is gone'}"
            )
