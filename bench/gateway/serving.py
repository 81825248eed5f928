"""Keryx as people run it: ``keryx serve`` and ``keryx --print`` in processes of their own.

Messages reach the gateway as signed webhooks and come back at a callback, because that is the platform that needs no
account. A process counts with its children.
"""

import asyncio
import base64
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import h11

from bench.driver import REPOSITORY, WorkerError
from bench.gateway.doubles import USER
from bench.gateway.load import Place
from keryx.core.people.tables import people
from keryx.platforms.webhook.wire import PLATFORM, Secret
from keryx.store.database import Tx
from keryx.store.opening import open_database

SECRET = "whsec_" + base64.b64encode(b"the benchmark's own secret, 32 b").decode("ascii")
COMMAND = (sys.executable, "-m", "keryx")
READY = b"keryx: ready"
PATIENCE_SECONDS = 60.0
SENDERS = 8
"""Requests that are under way at the same time."""
SETTLE_SECONDS_MAX = 45.0
"""The process that helps with much indexing is dismissed before."""
SETTLE_SECONDS = 2.0
BYTES_MAX = 65_536


class Memory(NamedTuple):
    """What a process and its children hold, in bytes; PSS shares what is shared."""

    rss: int
    pss: int


class Served(NamedTuple):
    """A gateway that is ready."""

    pid: int
    url: str
    seconds: float
    """From the start of the process to the ready line with the port open."""


def environment(place: Place, **settings: str) -> dict[str, str]:
    """Return the environment in which a command works on the store there."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(REPOSITORY / "src"),
        "KERYX_HOME": str(place.folder),
        "KERYX_DATABASE": place.database,
        **settings,
    }


@contextmanager
def serve(place: Place, *, callback: str | None = None, **more: str) -> Iterator[Served]:
    """Run ``keryx serve`` with the webhook on a free port, and with ``more`` settings."""
    port = _free_port()
    settings = {
        "KERYX_PLATFORMS_WEBHOOK_ENABLED": "true",
        "KERYX_PLATFORMS_WEBHOOK_SECRET": SECRET,
        "KERYX_PLATFORMS_WEBHOOK_PORT": str(port),
        "KERYX_LOG_LEVEL": "warning",
        **more,
    }
    if callback is not None:
        settings["KERYX_PLATFORMS_WEBHOOK_CALLBACK"] = callback
    began = time.perf_counter()
    process = subprocess.Popen(
        [*COMMAND, "serve"],
        env=environment(place, **settings),
        cwd=place.folder,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        _wait_for_ready(process)
        _wait_for_port(port)
        yield Served(pid=process.pid, url=f"http://127.0.0.1:{port}/", seconds=time.perf_counter() - began)
    finally:
        process.terminate()
        _, said = process.communicate(timeout=PATIENCE_SECONDS)
    if process.returncode:
        raise WorkerError(f"keryx serve ended with {process.returncode}: {said.decode()}")


def _wait_for_ready(process: "subprocess.Popen[bytes]") -> None:
    assert process.stderr is not None
    said = b""
    while not said.startswith(READY):
        said = process.stderr.readline()
        if not said:
            raise WorkerError("keryx serve ended before it was ready")


def _wait_for_port(port: int) -> None:
    until = time.perf_counter() + PATIENCE_SECONDS
    while time.perf_counter() < until:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.001)
    raise WorkerError("keryx serve does not listen")


def _free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port: int = door.getsockname()[1]
        return port


def print_hello(place: Place, **settings: str) -> float:
    """Return how long ``keryx --print hello`` takes."""
    began = time.perf_counter()
    done = subprocess.run(
        [*COMMAND, "--print", "hello"],
        env=environment(place, **settings),
        cwd=place.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    took = time.perf_counter() - began
    if done.returncode or not done.stdout.strip():
        raise WorkerError(f"keryx --print hello: {done.stderr.decode()}")
    return took


def memory(pid: int) -> Memory:
    """Return what a process and its children hold now."""
    held = [_memory_of(each) for each in _family(pid)]
    return Memory(rss=sum(each.rss for each in held), pss=sum(each.pss for each in held))


async def idle_memory(pid: int) -> Memory:
    """Return what a process holds once it has nothing to do and its helpers are gone."""
    until = time.perf_counter() + SETTLE_SECONDS_MAX
    await asyncio.sleep(SETTLE_SECONDS)
    while len(list(_family(pid))) > 1 and time.perf_counter() < until:  # noqa: ASYNC110 - it is another process
        await asyncio.sleep(1.0)
    return memory(pid)


def _family(pid: int) -> Iterator[int]:
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text(encoding="ascii").split():
            yield from _family(int(child))


def _memory_of(pid: int) -> Memory:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
    kilobytes = {name: int(value.split()[0]) for name, _, value in (line.partition(":") for line in lines)}
    return Memory(rss=kilobytes["Rss"] * 1024, pss=kilobytes["Pss"] * 1024)


async def let_programs_in(place: Place) -> None:
    """Let the owner speak by webhook, and make the store where there is none."""

    def meet(tx: Tx) -> None:
        owner = people.ensure_owner(tx)
        tx.run(
            "people.add_identity", platform=PLATFORM, account="", user_id=USER, person_id=owner.id, name=USER
        )
        people.mark_welcomed(tx, owner.id)

    database = open_database(place.database)
    await database.write(meet)
    await database.close()


class Callback:
    """Where answers are posted: takes all of them, and counts."""

    def __init__(self) -> None:
        self.answers = 0
        self._wanted = 0
        self._reached = asyncio.Event()
        self._server: asyncio.Server
        self._connections: set[asyncio.Task[None]] = set()

    async def open(self) -> str:
        """Listen, and return where."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        return f"http://{host}:{port}/"

    async def until(self, answers: int) -> None:
        """Wait for so many answers."""
        self._wanted = answers
        if self.answers < answers:
            self._reached.clear()
            await asyncio.wait_for(self._reached.wait(), PATIENCE_SECONDS)

    async def close(self) -> None:
        """Listen no more; whoever called is gone by now."""
        self._server.close()
        await asyncio.gather(*self._connections)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = h11.Connection(h11.SERVER)
        try:
            while await _next_request(talk, reader):
                self.answers += 1
                if self.answers >= self._wanted:
                    self._reached.set()
                writer.write(talk.send(h11.Response(status_code=204, headers=[])) or b"")
                writer.write(talk.send(h11.EndOfMessage()) or b"")
                await writer.drain()
                talk.start_next_cycle()
        except ConnectionError:
            return
        finally:
            writer.close()


async def _next_request(talk: h11.Connection, reader: asyncio.StreamReader) -> bool:
    """Read one request to its end; False when there is none any more."""
    while True:
        event = talk.next_event()
        if event is h11.NEED_DATA:
            talk.receive_data(await reader.read(BYTES_MAX))
        elif isinstance(event, h11.EndOfMessage):
            return True
        elif isinstance(event, h11.ConnectionClosed):
            return False


async def speak(url: str, *, chats: int) -> None:
    """Let every chat say one thing, a few at a time; raises ``WorkerError`` where one is not taken."""
    port = int(url.rstrip("/").rpartition(":")[2])
    numbers = iter(range(chats))

    async def send() -> None:
        for number in numbers:
            status = await _post(port, _signed(number))
            if b" 202 " not in status:
                raise WorkerError(f"the webhook answered {status.decode()}")

    await asyncio.gather(*(send() for _ in range(SENDERS)))


def _signed(number: int) -> bytes:
    body = json.dumps({"chat": f"chat-{number}", "user": USER, "text": "hello"}).encode()
    key, timestamp = f"hello-{number}", str(int(time.time()))
    signature = base64.b64encode(Secret.parse(SECRET).sign(key, timestamp, body)).decode("ascii")
    head = (
        "POST / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\nwebhook-id: {key}\r\nwebhook-timestamp: {timestamp}\r\n"
        f"webhook-signature: v1,{signature}\r\n\r\n"
    )
    return head.encode("ascii") + body


async def _post(port: int, request: bytes) -> bytes:
    """Send a request and return the first line of its answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        status = await reader.readline()
        await reader.read()
        return status
    finally:
        writer.close()
