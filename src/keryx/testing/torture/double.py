"""A faulty platform: it signs and sends, sends again, refuses, cuts connections, and records everything.

It speaks the webhook platform's protocol to any gateway that listens. It sends a message until a gateway responds with
2xx, one message after the other in each chat, and sometimes sends an accepted message again.
"""

import asyncio
import base64
import json
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Self

import h11
import httpx2

from keryx.platforms.webhook.wire import Secret
from keryx.testing.torture.records import PlatformRecords, ShownMessage, UserMessage
from keryx.values import dataclass

POST_SECONDS: Final = 3.0
AGAIN_SECONDS: Final = 0.02
LOOK_SECONDS: Final = 0.05
_CHUNK_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRates:
    """The percentages of faults: on a callback, or by sending an accepted message again."""

    refuse: int = 10
    cut_before: int = 2
    cut_after: int = 6
    send_again: int = 12


class PlatformDouble:
    """The platform's side of the webhook, during an ``async with`` block."""

    def __init__(
        self, records: PlatformRecords, *, secret: Secret, rng: random.Random, rates: FaultRates | None = None
    ) -> None:
        self.records = records
        self.gateways: dict[str, str] = {}
        """The URL of each gateway, by name."""
        self.shown = asyncio.Event()
        """Set and replaced whenever a message is shown."""
        self._secret = secret
        self._rng = rng
        self._rates: FaultRates | None = rates or FaultRates()
        self._last = ""
        self._probe: tuple[UserMessage, bytes] | None = None
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._again: set[asyncio.Task[None]] = set()
        self._client = httpx2.AsyncClient(timeout=httpx2.Timeout(POST_SECONDS, connect=1.0), trust_env=False)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        tasks = [*self._serving, *self._again]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._server.wait_closed()
        await self._client.aclose()

    def callback(self, node: str) -> str:
        """Return the callback URL of a gateway; the URL identifies the gateway."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}/{node}"

    def stop_faults(self) -> None:
        """Inject no more faults."""
        self._rates = None

    async def wait_for_repeats(self) -> None:
        """Wait until all repeated messages have been accepted again."""
        await asyncio.gather(*self._again)

    async def send(self, message: UserMessage, said: Mapping[str, str]) -> None:
        """Send a message until it is accepted; ``said`` are the fields of its body without the chat."""
        self.records.messages[message.id] = message
        body = json.dumps({**said, "chat": message.chat}).encode()
        await self._send_until_accepted(message, body)
        self._probe = self._probe or (message, body)
        if self._happens("send_again"):
            self.records.counts["accepted messages sent again"] += 1
            pause = self._rng.uniform(0, 1.5)
            task = asyncio.create_task(self._send_again(message, body, pause))
            self._again.add(task)
            task.add_done_callback(self._again.discard)

    async def probe(self) -> None:
        """Send the first accepted message again, until a gateway accepts it.

        Not the last accepted message: if Keryx had lost it, the probe would restore it.
        """
        if self._probe is not None:
            await self._send_until_accepted(*self._probe)

    async def _send_again(self, message: UserMessage, body: bytes, pause: float) -> None:
        await asyncio.sleep(pause)
        await self._send_until_accepted(message, body)

    async def _send_until_accepted(self, message: UserMessage, body: bytes) -> None:
        attempts = 0
        while True:
            # Try the gateway that accepted the last message first: only one gateway holds the account.
            for node in sorted(self.gateways, key=lambda name: name != self._last):
                attempts += 1
                if await self._post(node, message.id, body):
                    self._last = node
                    self.records.note_accepted(message)
                    self.records.counts["attempts to send"] += attempts
                    return
            await asyncio.sleep(AGAIN_SECONDS)

    async def _post(self, node: str, message_id: str, body: bytes) -> bool:
        timestamp = str(int(time.time()))
        signature = base64.b64encode(self._secret.sign(message_id, timestamp, body)).decode("ascii")
        headers = {
            "content-type": "application/json",
            "webhook-id": message_id,
            "webhook-timestamp": timestamp,
            "webhook-signature": f"v1,{signature}",
        }
        try:
            response = await self._client.post(self.gateways[node], content=body, headers=headers)
        except httpx2.HTTPError:
            return False
        if 400 <= response.status_code < 500:
            self.records.violations.append(f"{node} refused {message_id} with {response.status_code}")
        return response.is_success

    def _happens(self, fault: str) -> bool:
        return self._rates is not None and self._rng.randrange(100) < getattr(self._rates, fault)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        http = h11.Connection(h11.SERVER)
        try:
            # A gateway that is killed in the middle of a call sends no valid request.
            with suppress(OSError, h11.RemoteProtocolError):
                request = await _read_request(http, reader)
                answer = None if request is None else self._answer(*request)
                if answer is not None:
                    status, headers = answer
                    head = h11.Response(
                        status_code=status,
                        headers=[*headers, ("content-length", "0"), ("connection", "close")],
                    )
                    writer.write((http.send(head) or b"") + (http.send(h11.EndOfMessage()) or b""))
                    await writer.drain()
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def _answer(self, request: h11.Request, body: bytes) -> tuple[int, list[tuple[str, str]]] | None:
        """Return the response to a callback; None cuts the connection instead."""
        if self._happens("refuse"):
            self.records.counts["callbacks refused"] += 1
            return self._rng.choice([(429, [("retry-after", "1")]), (503, [("retry-after", "0")])])
        if self._happens("cut_before"):
            self.records.counts["connections cut"] += 1
            return None
        shown = self._read(request, body)
        if shown is None:
            return 400, []
        if self.records.note_shown(shown):
            self.shown.set()
            self.shown = asyncio.Event()
        if self._happens("cut_after"):
            self.records.counts["receipts lost"] += 1
            return None
        return 204, []

    def _read(self, request: h11.Request, body: bytes) -> ShownMessage | None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers}
        message_id = headers.get("webhook-id", "")
        signed = self._secret.sign(message_id, headers.get("webhook-timestamp", ""), body)
        if headers.get("webhook-signature") != f"v1,{base64.b64encode(signed).decode('ascii')}":
            self.records.violations.append(f"callback {message_id} is not signed")
            return None
        said: dict[str, Any] = json.loads(body)
        return ShownMessage(
            id=message_id,
            chat=said["chat"],
            text=said["text"],
            reply_to=said["reply_to"],
            node=request.target.decode("ascii").removeprefix("/"),
            at=time.monotonic(),
        )


async def _read_request(
    http: h11.Connection, reader: asyncio.StreamReader
) -> tuple[h11.Request, bytes] | None:
    request, body = None, bytearray()
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(await reader.read(_CHUNK_BYTES))
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage) and request is not None:
            return request, bytes(body)
        else:
            return None


async def until(holds: Callable[[], bool], *, seconds: float) -> bool:
    """Wait until ``holds`` is true, up to ``seconds``; return whether it is true."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(LOOK_SECONDS)
    return True
