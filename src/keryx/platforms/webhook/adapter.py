"""The webhook platform at work: a small HTTP server for what comes in, a client for what goes out.

A request is answered with 202 only after its message was acknowledged, that is: stored. Whoever gets no answer sends it
again under the same id, which is why nothing is kept here.
"""

import asyncio
import errno
import logging
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Final

import httpx2

from keryx.clock import Clock, SystemClock
from keryx.core.conversations.rules.command import Command
from keryx.core.conversations.rules.part import Part
from keryx.core.deliveries.rules.delivery import Outcome, Rejected, Unknown
from keryx.core.deliveries.rules.pieces import MediaPiece, Piece, TextPiece
from keryx.core.deliveries.rules.route import Address, split_at_first_colon
from keryx.core.deliveries.rules.text import text_pieces
from keryx.core.people.rules.access import Refused
from keryx.errors import InvalidValue, NotConnected
from keryx.platforms.adapter import Capabilities, Malformed, Outgoing, Update
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
"""Messages that are read and not stored yet; more are asked to come again."""
CONNECTIONS_MAX: Final = 128
ANSWER_BYTES_MAX: Final = 65_536
"""What is read of a callback's answer, so that its connection can be used again."""

_CLOSE_SECONDS: Final = 1.0
_CONNECT_SECONDS: Final = 5.0
_SOON: Final = (("retry-after", "1"),)
_OVERLOADED: Final = Problem(
    status=503, detail="Too much is waiting. Send it again, under the same webhook-id.", headers=_SOON
)
_NOT_STORED: Final = Problem(
    status=503,
    detail="It is not stored yet. Send it again, under the same webhook-id.",
    headers=_SOON,
)
_TOO_SLOW: Final = Problem(status=408, detail="The request took too long to arrive.")

_NEVER_LEFT: Final = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.UnsupportedProtocol,
    httpx2.LocalProtocolError,
    httpx2.InvalidURL,
)
"""What goes wrong before the first byte of a request is written."""

_log = logging.getLogger("keryx.platforms.webhook")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """How other programs reach us, and where our answers go."""

    secrets: tuple[Secret, ...]
    """All are accepted, so that one can be replaced while both sides run; the first one signs."""
    host: str = "127.0.0.1"
    port: int = 8460
    """0 takes any free one."""
    callback: str | None = None
    account: str | None = None
    read_seconds: float = 10.0
    """For a whole request to arrive."""
    store_seconds: float = 30.0
    """For its message to be stored, before it is asked to come again."""
    send_seconds: float = 20.0
    """For the callback to answer."""

    def __post_init__(self) -> None:
        if not self.secrets:
            raise InvalidValue("the webhook platform needs a secret: nobody could be told from anybody else")
        if self.callback is not None and not self.callback.startswith(("http://", "https://")):
            raise InvalidValue(f"webhook callback {self.callback!r}: give a URL that begins with https://")


@dataclass(slots=True, eq=False)
class _Waiting:
    """A message that is not stored yet, and the answer its senders wait for."""

    update: Update
    answer: "asyncio.Future[Problem | Stored]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def settle(self, answer: Problem | Stored) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)


class WebhookAdapter:
    """One endpoint that other programs speak to, and the callback they are answered at."""

    def __init__(self, settings: WebhookSettings, *, clock: Clock | None = None) -> None:
        self.platform = PLATFORM
        self.account = settings.account
        self.capabilities = Capabilities(text_max=TEXT_MAX, deduplicates=True)
        self._settings = settings
        self._clock = clock or SystemClock()
        self._door: _Door | None = None
        self._client: httpx2.AsyncClient | None = None

    @property
    def url(self) -> str | None:
        """Where it listens, while it does."""
        return self._door.url if self._door else None

    async def connect(self) -> None:
        """Listen."""
        await self._shut()
        self._door = _Door(self._settings, self._clock)
        await self._door.open()
        _log.info("listening at %s", self._door.url)

    async def receive(self) -> AsyncGenerator[Update, None]:
        """Yield what is signed; what was not acknowledged, its sender sends again."""
        door = self._door
        if door is None or door.is_used:
            await self.connect()
            door = self._door
        assert door is not None, "it was just opened"
        door.is_used = True
        try:
            while True:
                yield await door.arrived.get()
        finally:
            await door.close()

    async def acknowledge(self, update: Update, *, refused: Refused | None = None) -> None:
        """Let the sender know that it is stored, or that its author may not speak."""
        if self._door is not None:
            self._door.acknowledge(update, refused)

    def pieces(self, parts: tuple[Part, ...]) -> tuple[Piece, ...]:
        """Return the texts cut to the platform's length; media are named, with their address where they have one."""
        pieces = text_pieces(parts, text_max=TEXT_MAX)
        return tuple(
            TextPiece(text=media_text(piece.media)[:TEXT_MAX]) if isinstance(piece, MediaPiece) else piece
            for piece in pieces
        )

    async def send(self, outgoing: Outgoing) -> Outcome:
        """Call the callback."""
        if self._settings.callback is None:
            return Rejected(
                reason="there is no callback: set platforms.webhook.callback to a URL", permanent=True
            )
        now = self._clock.now()
        callback = render(outgoing, now=now, secret=self._settings.secrets[0])
        if self._client is None:
            self._client = self._make_client()
        outcome: Outcome = Unknown()
        try:
            # The client bounds each step; an answer that comes in drops could still take forever.
            async with asyncio.timeout(2 * self._settings.send_seconds):
                request = self._client.stream(
                    "POST", self._settings.callback, content=callback.body, headers=dict(callback.headers)
                )
                async with request as response:
                    outcome = outcome_of(response.status_code, response.headers, key=outgoing.key, now=now)
                    await _read_out(response)
        except _NEVER_LEFT as error:
            outcome = Rejected(reason=f"the callback cannot be reached: {str(error) or type(error).__name__}")
        except (httpx2.HTTPError, TimeoutError) as error:
            # Whatever answer came before holds.
            _log.info("the callback broke off: %s", type(error).__name__)
        return outcome

    async def edit(self, outgoing: Outgoing, *, message_id: str) -> Outcome:
        """Refuse: a callback that was made cannot be changed."""
        return Rejected(
            reason=f"{message_id} was sent to {outgoing.to}: it cannot be changed", permanent=True
        )

    def split_chat(self, text: str) -> tuple[str, str | None]:
        """Take a chat and a thread apart."""
        return split_at_first_colon(text)

    async def offer_commands(self, commands: Sequence[Command]) -> None:
        """Offer nothing: a program has no menu."""

    async def show_typing(self, to: Address) -> None:
        """Show nothing: a program does not look."""

    async def close(self) -> None:
        """Stop listening and let go of connections."""
        await self._shut()
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _shut(self) -> None:
        door, self._door = self._door, None
        if door is not None:
            await door.close()

    def _make_client(self) -> httpx2.AsyncClient:
        seconds = self._settings.send_seconds
        # The environment is read by ``config_load`` alone: no proxies and certificates from there.
        timeout = httpx2.Timeout(seconds, connect=_CONNECT_SECONDS)
        return httpx2.AsyncClient(timeout=timeout, trust_env=False)


class _Door:
    """The listening socket, and what came through it and is not stored yet."""

    def __init__(self, settings: WebhookSettings, clock: Clock) -> None:
        self.arrived: asyncio.Queue[Update] = asyncio.Queue()
        self.url: str | None = None
        self.is_used = False
        """Whether somebody receives, or has received, what arrives."""
        self._settings = settings
        self._clock = clock
        self._waiting: dict[tuple[str, bytes], _Waiting] = {}
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Listen; raises ``NotConnected`` where the port is taken, or the host is not ours."""
        host, port = self._settings.host, self._settings.port
        try:
            self._server = await asyncio.start_server(self._connected, host, port)
        except OSError as error:
            raise NotConnected(_why_not(error, host=host, port=port)) from error
        host, port = self._server.sockets[0].getsockname()[:2]
        self.url = f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"

    async def close(self) -> None:
        """Take nothing more, and answer those who wait that it is not stored."""
        if self._server is None:
            return
        server, self._server, self.url = self._server, None, None
        server.close()
        for waiting in self._waiting.values():
            waiting.settle(_NOT_STORED)
        if self._connections:
            _, late = await asyncio.wait(self._connections, timeout=_CLOSE_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await server.wait_closed()

    def acknowledge(self, update: Update, refused: Refused | None) -> None:
        """Answer those who sent an update."""
        answer: Problem | Stored = Stored(id=update.ref)
        if isinstance(update, Malformed):
            answer = Problem(status=400, detail=update.reason)
        elif refused is not None:
            answer = refusal(refused)
        for key, waiting in list(self._waiting.items()):
            if waiting.update == update:
                del self._waiting[key]
                waiting.settle(answer)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._server is None:
            # Let in just before the door was shut.
            writer.transport.abort()
            return
        task = asyncio.create_task(self._serve(reader, writer), name="keryx-webhook-request")
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = HttpRequest(reader, writer)
        try:
            # What the other side does to its connection is no fault of ours, and it will come again.
            with suppress(OSError):
                answer = await self._answer(request)
                if answer is not None:
                    await request.answer(answer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, request: HttpRequest) -> Problem | Stored | None:
        """Return the id of a message that was stored, or what is wrong; None when the other side is gone."""
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
        # Only as long as it waits: the same message that is sent twice meanwhile is one.
        waiting = self._waiting.get((update.ref, body))
        if waiting is None:
            if len(self._waiting) >= WAITING_MAX or self._server is None:
                return _OVERLOADED
            waiting = self._waiting[update.ref, body] = _Waiting(update)
            self.arrived.put_nowait(update)
        await asyncio.wait([waiting.answer], timeout=self._settings.store_seconds)
        return waiting.answer.result() if waiting.answer.done() else _NOT_STORED


def _why_not(error: OSError, *, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"platforms.webhook.port {port} is taken on {host} (address in use): end the program that has it, "
            "or set another port"
        )
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else "no such host"
    return f"platforms.webhook.port {port} cannot be listened on at platforms.webhook.host {host}: {reason}"


async def _read_out(response: httpx2.Response) -> None:
    """Read an answer to its end, if that is near; its status has been seen, so nothing here changes the outcome."""
    seen = 0
    with suppress(httpx2.HTTPError):
        async for chunk in response.aiter_raw():
            seen += len(chunk)
            if seen > ANSWER_BYTES_MAX:
                return
