"""Gateways as processes: started, killed, frozen, thawed and asked to end, each known by its own name.

Every gateway has a folder of its own, as on a machine of its own, and an environment that holds nothing of the user's.
"""

import asyncio
import os
import random
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Final

import keryx
from keryx.testing.torture.node import READY
from keryx.values import dataclass

PORTS: Final = range(20_000, 30_000)
"""Below what the system gives to outgoing connections: one of those would keep a restarted gateway from its port."""
READY_SECONDS: Final = 60.0
END_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What every gateway is told."""

    folder: Path
    database: str = field(repr=False)
    secret: str = field(repr=False)
    book: Path


class Node:
    """One gateway, through all its lives."""

    def __init__(self, name: str, *, port: int, callback: str, surroundings: Surroundings) -> None:
        self.name = name
        self.url = f"http://127.0.0.1:{port}/"
        self.holder = ""
        """Under which name its present life takes leases."""
        self.started_at = 0.0
        self.ready_at: float | None = None
        self.lock = asyncio.Lock()
        """Whoever does something to it holds this."""
        self._surroundings = surroundings
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._told = asyncio.Event()
        self._environment = {
            "PATH": os.environ.get("PATH", ""),
            "PYTHONPATH": str(Path(keryx.__file__).parents[1]),
            "KERYX_HOME": str(surroundings.folder / name),
            "KERYX_DATABASE": surroundings.database,
            "KERYX_WELCOME": "none",
            "KERYX_WEBHOOK_ENABLED": "true",
            "KERYX_WEBHOOK_PORT": str(port),
            "KERYX_WEBHOOK_CALLBACK": callback,
            "KERYX_WEBHOOK_SECRET": surroundings.secret,
        }

    @property
    def log(self) -> Path:
        """What it logged in all its lives."""
        return self._surroundings.folder / f"{self.name}.log"

    @property
    def pid(self) -> int:
        """The process of its present life."""
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Begin a life; returns when the process is made, long before it is ready."""
        (self._surroundings.folder / self.name).mkdir(exist_ok=True)
        self.ready_at = None
        self.started_at = time.monotonic()
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "keryx.testing.torture.node",
                str(self._surroundings.book),
                stdin=asyncio.subprocess.PIPE,  # it ends when we do
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=self._environment,
                cwd=self._surroundings.folder,
            )
        self._told = asyncio.Event()
        self._listening = asyncio.create_task(self._listen(self._process, self._told))

    async def until_ready(self) -> bool:
        """Return whether it said that it is ready, once it has or will not any more."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._told.wait(), READY_SECONDS)
        return self.ready_at is not None

    async def kill(self) -> None:
        """End its life without a word."""
        await self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Let it stand still."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)

    async def ask_to_end(self) -> int:
        """Ask it to end, and return its exit code; one that does not is killed."""
        return await self._end(signal.SIGTERM)

    async def _end(self, number: signal.Signals) -> int:
        if self._process is None:
            return 0
        process, self._process = self._process, None
        with suppress(ProcessLookupError):
            process.send_signal(number)
        try:
            code = await asyncio.wait_for(process.wait(), END_SECONDS)
        except TimeoutError:
            process.kill()
            code = await process.wait()
        if self._listening is not None:
            await self._listening
        return code

    async def _listen(self, process: asyncio.subprocess.Process, told: asyncio.Event) -> None:
        """Hear that it is ready, or that it will never be."""
        assert process.stdout is not None
        while line := (await process.stdout.readline()).decode():
            if line.startswith(READY):
                self.ready_at = time.monotonic()
                self.holder = line.removeprefix(READY).strip()
                told.set()
        told.set()


def free_port(rng: random.Random) -> int:
    """Return a port that nobody listens on now."""
    while True:
        port = rng.choice(PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
