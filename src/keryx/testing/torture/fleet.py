"""Gateways as processes that can be started, killed, frozen, thawed and terminated.

Every gateway has its own folder, as on its own machine, and an environment without the user's variables.
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
"""Below the ports of outgoing connections: such a connection could occupy the port of a restarted gateway."""
READY_SECONDS: Final = 60.0
END_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """The settings that all gateways share."""

    folder: Path
    database: str = field(repr=False)
    secret: str = field(repr=False)
    effect_log: Path


class Node:
    """One gateway, across restarts."""

    def __init__(self, name: str, *, port: int, callback: str, settings: NodeSettings) -> None:
        self.name = name
        self.url = f"http://127.0.0.1:{port}/"
        self.holder = ""
        """The lease holder name of the current process."""
        self.started_at = 0.0
        self.ready_at: float | None = None
        self.lock = asyncio.Lock()
        """Held by the task that injects a fault into this gateway."""
        self._settings = settings
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._ready_or_ended = asyncio.Event()
        self._environment = {
            "PATH": os.environ.get("PATH", ""),
            "PYTHONPATH": str(Path(keryx.__file__).parents[1]),
            "KERYX_HOME": str(settings.folder / name),
            "KERYX_DATABASE": settings.database,
            "KERYX_WELCOME": "none",
            "KERYX_PLATFORMS_WEBHOOK_ENABLED": "true",
            "KERYX_PLATFORMS_WEBHOOK_PORT": str(port),
            "KERYX_PLATFORMS_WEBHOOK_CALLBACK": callback,
            "KERYX_PLATFORMS_WEBHOOK_SECRET": settings.secret,
        }

    @property
    def log(self) -> Path:
        """The log of all its processes."""
        return self._settings.folder / f"{self.name}.log"

    @property
    def pid(self) -> int:
        """The id of the current process."""
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Start a process; return when it exists, long before it is ready."""
        (self._settings.folder / self.name).mkdir(exist_ok=True)
        self.ready_at = None
        self.started_at = time.monotonic()
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "keryx.testing.torture.node",
                str(self._settings.effect_log),
                stdin=asyncio.subprocess.PIPE,  # the gateway ends when this pipe closes
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=self._environment,
                cwd=self._settings.folder,
            )
        self._ready_or_ended = asyncio.Event()
        self._listening = asyncio.create_task(self._listen(self._process, self._ready_or_ended))

    async def until_ready(self) -> bool:
        """Wait until the gateway is ready, or ends without being ready; return whether it is ready."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ready_or_ended.wait(), READY_SECONDS)
        return self.ready_at is not None

    async def kill(self) -> None:
        """Kill the process with SIGKILL."""
        await self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Suspend the process."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume the process."""
        os.kill(self.pid, signal.SIGCONT)

    async def terminate(self) -> int:
        """Terminate the process with SIGTERM, and return its exit code; kill it after a timeout."""
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

    async def _listen(self, process: asyncio.subprocess.Process, ready_or_ended: asyncio.Event) -> None:
        """Read the process's output until it is ready, or has ended."""
        assert process.stdout is not None
        while line := (await process.stdout.readline()).decode():
            if line.startswith(READY):
                self.ready_at = time.monotonic()
                self.holder = line.removeprefix(READY).strip()
                ready_or_ended.set()
        ready_or_ended.set()


def free_port(rng: random.Random) -> int:
    """Return a port that is free now."""
    while True:
        port = rng.choice(PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
