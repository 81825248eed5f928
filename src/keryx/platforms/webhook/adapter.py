"""The adapter of the webhook platform: a small HTTP server for messages, and a client for callbacks.

A request is answered with 202 only after its message is acknowledged, that is: stored. The adapter stores nothing: a
sender that gets no answer sends the message again with the same id.
"""

import asyncio
import errno
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import field
from typing import Final

import httpx2

from keryx.clock import Clock, SystemClock
from keryx.core.conversations.rules.part import Part
from keryx.core.deliveries.rules.delivery import Outcome, Rejected, Unknown
from keryx.core.deliveries.rules.pieces import MediaPiece, Piece, TextPiece
from keryx.core.deliveries.rules.text import text_pieces
from keryx.core.people.rules.access import Refused
from keryx.errors import InvalidValue, NotConnected
from keryx.platforms.adapter import Adapter, Capabilities, Malformed, Outgoing, Update
from keryx.platforms.webhook.request import HttpRequest
from keryx.platforms.webhook.wire import (
    PLATFORM,
    Problem,
    Secret,
    Stored,
    media_text,
    outcome_of,
    parse,
    refusal,
    render,
)
from keryx.values import dataclass

TEXT_MAX: Final = 16_000
WAITING_MAX: Final = 64
"""The most messages that may wait to be stored; the senders of further messages are asked to retry."""
CONNECTIONS_MAX: Final = 128
ANSWER_BYTES_MAX: Final = 65_536
"""How much of a callback's answer is read so that its connection can be reused."""

_CLOSE_SECONDS: Final = 1.0
_CONNECT_SECONDS: Final = 5.0
_RETRY_SOON: Final = (("retry-after", "1"),)
_OVERLOADED: Final = Problem(
    status=503,
    detail="Too many messages are waiting. Send the message again with the same webhook-id.",
    headers=_RETRY_SOON,
)
_NOT_STORED: Final = Problem(
    status=503,
    detail="The message is not stored yet. Send it again with the same webhook-id.",
    headers=_RETRY_SOON,
)
_TOO_SLOW: Final = Problem(status=408, detail="The request took too long to arrive.")

_NOT_SENT: Final = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.UnsupportedProtocol,
    httpx2.LocalProtocolError,
    httpx2.InvalidURL,
)
"""Errors before the first byte of a request is sent."""

_log = logging.getLogger("keryx.platforms.webhook")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """The address and secrets of the endpoint, the callback, and time limits."""

    secrets: tuple[Secret, ...]
    """All are accepted, so that a secret can be replaced without downtime. The first one signs callbacks."""
    host: str = "127.0.0.1"
    port: int = 8460
    """0 takes a free port."""
    callback: str | None = None
    account: str | None = None
    read_seconds: float = 10.0
    """The time limit for receiving a request."""
    store_seconds: float = 30.0
    """The time limit for storing its message. After that, the sender is asked to retry."""
    send_seconds: float = 20.0
    """The time limit for the callback's answer."""

    def __post_init__(self) -> None:
        if not self.secrets:
            raise InvalidValue("the webhook platform needs a secret: otherwise anyone could send messages")
        if self.callback is not None and not self.callback.startswith(("http://", "https://")):
            raise InvalidValue(f"webhook callback {self.callback!r}: give a URL that begins with https://")


@dataclass(slots=True, eq=False)
class _Waiting:
    """A message that is not stored yet, and the answer for which its senders wait."""

    update: Update
    answer: "asyncio.Future[Problem | Stored]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def set_answer(self, answer: Problem | Stored) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)


class WebhookAdapter(Adapter):
    """One endpoint for messages from programs, and the callback for the answers."""

    def __init__(self, settings: WebhookSettings, *, clock: Clock | None = None) -> None:
        self.platform = PLATFORM
        self.account = settings.account
        self.capabilities = Capabilities(text_max=TEXT_MAX, deduplicates=True)
        self._settings = settings
        self._clock = clock or SystemClock()
        self._listener: _Listener | None = None
        self._client: httpx2.AsyncClient | None = None

    @property
    def url(self) -> str | None:
        """The address of the endpoint; None if it does not listen."""
        return self._listener.url if self._listener else None

    async def connect(self) -> None:
        """Listen on the configured host and port."""
        await self._stop_listening()
        self._listener = _Listener(self._settings, self._clock)
        await self._listener.open()
        _log.info("listening at %s", self._listener.url)

    async def receive(self) -> AsyncGenerator[Update, None]:
        """Yield signed messages. A message that is not acknowledged is sent again by its sender."""
        listener = self._listener
        if listener is None or listener.is_used:
            await self.connect()
            listener = self._listener
        assert listener is not None, "connect sets it"
        listener.is_used = True
        try:
            while True:
                yield await listener.arrived.get()
        finally:
            await listener.close()

    async def acknowledge(self, update: Update, *, refused: Refused | None = None) -> None:
        """Answer the sender that the message is stored, or that its author has no access."""
        if self._listener is not None:
            self._listener.acknowledge(update, refused)

    def pieces(self, parts: tuple[Part, ...]) -> tuple[Piece, ...]:
        """Return the texts, split to the platform's limit, and for media their names and links."""
        pieces = text_pieces(parts, text_max=TEXT_MAX)
        return tuple(
            TextPiece(text=media_text(piece.media)[:TEXT_MAX]) if isinstance(piece, MediaPiece) else piece
            for piece in pieces
        )

    async def send(self, outgoing: Outgoing) -> Outcome:
        """Post the piece to the callback."""
        if self._settings.callback is None:
            return Rejected(
                reason="there is no callback; set platforms.webhook.callback to a URL", permanent=True
            )
        now = self._clock.now()
        callback = render(outgoing, now=now, secret=self._settings.secrets[0])
        if self._client is None:
            self._client = self._make_client()
        outcome: Outcome = Unknown()
        try:
            # The client limits only each step: a slow answer could still take forever.
            async with asyncio.timeout(2 * self._settings.send_seconds):
                request = self._client.stream(
                    "POST", self._settings.callback, content=callback.body, headers=dict(callback.headers)
                )
                async with request as response:
                    outcome = outcome_of(response.status_code, response.headers, key=outgoing.key, now=now)
                    await _drain(response)
        except _NOT_SENT as error:
            outcome = Rejected(reason=f"the callback cannot be reached: {str(error) or type(error).__name__}")
        except (httpx2.HTTPError, TimeoutError) as error:
            # The outcome of an answer that arrived before the error is valid.
            _log.info("the connection to the callback failed: %s", type(error).__name__)
        return outcome

    async def close(self) -> None:
        """Stop listening, and close the connections."""
        await self._stop_listening()
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _stop_listening(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            await listener.close()

    def _make_client(self) -> httpx2.AsyncClient:
        seconds = self._settings.send_seconds
        # Only ``config_load`` may read the environment, so the client must not take proxies and certificates from it.
        timeout = httpx2.Timeout(seconds, connect=_CONNECT_SECONDS)
        return httpx2.AsyncClient(timeout=timeout, trust_env=False)


class _Listener:
    """The listening socket, its connections, and the messages that are not stored yet."""

    def __init__(self, settings: WebhookSettings, clock: Clock) -> None:
        self.arrived: asyncio.Queue[Update] = asyncio.Queue()
        self.url: str | None = None
        self.is_used = False
        """Whether ``receive`` has used it: after that, a new listener is needed."""
        self._settings = settings
        self._clock = clock
        self._waiting: dict[tuple[str, bytes], _Waiting] = {}
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Listen; raise ``NotConnected`` if the port is taken or the host is not an address of this machine."""
        host, port = self._settings.host, self._settings.port
        try:
            self._server = await asyncio.start_server(self._connected, host, port)
        except OSError as error:
            raise NotConnected(_describe(error, host=host, port=port)) from error
        host, port = self._server.sockets[0].getsockname()[:2]
        self.url = f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"

    async def close(self) -> None:
        """Stop listening, and answer the waiting senders that their messages are not stored."""
        if self._server is None:
            return
        server, self._server, self.url = self._server, None, None
        server.close()
        for waiting in self._waiting.values():
            waiting.set_answer(_NOT_STORED)
        if self._connections:
            _, late = await asyncio.wait(self._connections, timeout=_CLOSE_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await server.wait_closed()

    def acknowledge(self, update: Update, refused: Refused | None) -> None:
        """Answer the senders of an update."""
        answer: Problem | Stored = Stored(id=update.ref)
        if isinstance(update, Malformed):
            answer = Problem(status=400, detail=update.reason)
        elif refused is not None:
            answer = refusal(refused)
        for key, waiting in list(self._waiting.items()):
            if waiting.update == update:
                del self._waiting[key]
                waiting.set_answer(answer)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._server is None:
            # The connection was accepted just before ``close``.
            writer.transport.abort()
            return
        task = asyncio.create_task(self._serve(reader, writer), name="keryx-webhook-request")
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = HttpRequest(reader, writer)
        try:
            # A client that closes its connection sends the message again.
            with suppress(OSError):
                answer = await self._answer(request)
                if answer is not None:
                    await request.answer(answer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, request: HttpRequest) -> Problem | Stored | None:
        """Return the answer to a request; None if the client closed the connection."""
        if len(self._connections) > CONNECTIONS_MAX:
            return _OVERLOADED
        try:
            async with asyncio.timeout(self._settings.read_seconds):
                body = await request.read()
        except TimeoutError:
            return _TOO_SLOW
        if not isinstance(body, bytes):
            return body
        settings = self._settings
        update = parse(
            request.headers, body, now=self._clock.now(), secrets=settings.secrets, account=settings.account
        )
        if isinstance(update, Problem):
            _log.info("refused a request: %s %s", update.status, update.detail)
            return update
        return await self._store(update, body)

    async def _store(self, update: Update, body: bytes) -> Problem | Stored:
        # A repeated request for a message that is still waiting waits for the same answer.
        waiting = self._waiting.get((update.ref, body))
        if waiting is None:
            if len(self._waiting) >= WAITING_MAX or self._server is None:
                return _OVERLOADED
            waiting = self._waiting[update.ref, body] = _Waiting(update)
            self.arrived.put_nowait(update)
        await asyncio.wait([waiting.answer], timeout=self._settings.store_seconds)
        return waiting.answer.result() if waiting.answer.done() else _NOT_STORED


def _describe(error: OSError, *, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"platforms.webhook.port {port} is taken on {host} (address in use); end the program that uses the port, "
            "or set another port"
        )
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else "no such host"
    return f"cannot listen on platforms.webhook.port {port} of platforms.webhook.host {host}: {reason}"


async def _drain(response: httpx2.Response) -> None:
    """Read a short answer to its end. Errors do not change the outcome, which depends on the status only."""
    read = 0
    with suppress(httpx2.HTTPError):
        async for chunk in response.aiter_raw():
            read += len(chunk)
            if read > ANSWER_BYTES_MAX:
                return
