"""The model server: one answer of the script for each request, in the protocol of the request's path.

It speaks HTTP over a real socket on the caller's event loop, keeps every request, and has events for a hanging answer
and for a client that left, so that tests wait for events and not for time.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from json import dumps, loads
from types import TracebackType
from typing import Protocol

import h11

from keryx.core.values.json_value import JsonValue
from keryx.testing.model_server import anthropic, google, openai
from keryx.testing.model_server.script import (
    Answer,
    Asked,
    Piece,
    Refusal,
    Reply,
    Script,
    count_prompt,
    pieces,
    too_long,
)

READ_BYTES = 65_536
JSON = [("content-type", "application/json")]
STREAM = [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]
OVER = Refusal(status=400, message="the script has ended", kind="script_ended")


class Wire(Protocol):
    """The encoding of a reply in a protocol."""

    streams: bool

    def begin(self) -> Iterator[str]:
        """Yield the events before the first piece."""

    def piece(self, piece: Piece) -> Iterator[str]:
        """Yield the events of a piece."""

    def end(self) -> Iterator[str]:
        """Yield the events after the last piece."""

    def whole(self) -> JsonValue:
        """Return the whole answer as one value."""


class _CutOff(Exception):
    """The connection ends in the middle of an answer."""


class ModelServer:
    """Answers requests from a script during an ``async with`` block."""

    def __init__(
        self,
        script: Script = (),
        *,
        key: str | None = None,
        models: Sequence[str] = (),
        window_tokens: int | None = None,
    ) -> None:
        """Play ``script``; with ``key`` refuse all other keys, with ``models`` all other models.

        With ``window_tokens`` the server counts the tokens of each request, refuses longer requests, and reports its
        count with each answer.
        """
        self._script = script
        self._key = key
        self._models = tuple(models)
        self._window_tokens = window_tokens
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.requests: list[Asked] = []
        """The requests that the script answered, in order."""
        self.refused: list[int] = []
        """The token counts of requests that were too long."""
        self.hangs = asyncio.Event()
        """Set when an answer hangs."""
        self.may_go_on = asyncio.Event()
        """Set this to continue a hanging answer."""
        self.left = asyncio.Event()
        """Set when a client leaves in the middle of an answer."""
        self.port = 0

    @property
    def url(self) -> str:
        """The server's address, for Anthropic's and Google's clients."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        """The address for OpenAI's clients."""
        return f"{self.url}/v1"

    async def __aenter__(self) -> "ModelServer":
        """Start to listen."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all connections."""
        assert self._server is not None
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_Connection(self, reader, writer).serve())
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    def answer(self, asked: Asked) -> Answer:
        """Return the script's answer to a request."""
        if self._key is not None and self._key not in (
            asked.headers.get("authorization", "").removeprefix("Bearer "),
            asked.headers.get("x-api-key"),
            asked.headers.get("x-goog-api-key"),
        ):
            return Refusal(status=401, message="Incorrect API key provided")
        if self._models and asked.model not in self._models:
            return Refusal(status=404, message=f"The model `{asked.model}` does not exist")
        tokens = count_prompt(asked)
        if self._window_tokens is not None and tokens > self._window_tokens:
            self.refused.append(tokens)
            return too_long(asked, tokens, self._window_tokens)
        self.requests.append(asked)
        if callable(self._script):
            answer = self._script(asked)
        else:
            number = len(self.requests) - 1
            answer = self._script[number] if number < len(self._script) else OVER
        if self._window_tokens is None or isinstance(answer, Refusal):
            return answer
        return replace(answer, input_tokens=tokens)

    def list_models(self) -> JsonValue:
        """Return the known models, in a form that all clients read."""
        known: list[JsonValue] = [
            {"id": name, "object": "model", "type": "model", "display_name": name} for name in self._models
        ]
        named: list[JsonValue] = [{"name": f"models/{name}"} for name in self._models]
        return {"object": "list", "data": known, "has_more": False, "models": named}


class _Connection:
    """One connection: it serves requests until either side closes it."""

    def __init__(
        self, server: ModelServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER)

    async def serve(self) -> None:
        try:
            with suppress(ConnectionError, h11.RemoteProtocolError, _CutOff):
                while (asked := await self._receive()) is not None:
                    await self._respond(asked)
                    if self._http.our_state is h11.MUST_CLOSE:
                        break  # the client asked to close
                    self._http.start_next_cycle()
        except asyncio.CancelledError:
            self._writer.transport.abort()
            raise
        finally:
            self._writer.close()
            with suppress(ConnectionError):
                await self._writer.wait_closed()

    async def _receive(self) -> Asked | None:
        head: h11.Request | None = None
        body = b""
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                self._http.receive_data(await self._reader.read(READ_BYTES))
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                assert head is not None, "a body has a head"
                headers = {name.decode(): value.decode() for name, value in head.headers}
                return Asked(path=head.target.decode(), headers=headers, body=loads(body or b"{}"))
            else:
                return None

    async def _respond(self, asked: Asked) -> None:
        path = asked.path.partition("?")[0]
        if path in ("/v1/models", google.LIST_PATH):
            await self._send_whole(200, self._server.list_models())
        elif path == openai.PATH:
            await self._play(asked, openai.OpenAIWire, openai.refused)
        elif path == anthropic.PATH:
            await self._play(asked, anthropic.AnthropicWire, anthropic.refused)
        elif google.PATH.fullmatch(path):
            await self._play(asked, google.GoogleWire, google.refused)
        else:
            await self._send_whole(404, openai.refused(Refusal(status=404, message=f"no such path: {path}")))

    async def _play(
        self,
        asked: Asked,
        wire_of: Callable[[Reply, Asked], Wire],
        refused: Callable[[Refusal], JsonValue],
    ) -> None:
        answer = self._server.answer(asked)
        if isinstance(answer, Refusal):
            after = answer.retry_after_seconds
            headers = [] if after is None else [("retry-after", f"{after:g}")]
            body = refused(answer) if answer.body is None else answer.body
            if answer.in_stream:
                await self._send(h11.Response(status_code=200, headers=STREAM))
                await self._send_text(iter([f"event: error\ndata: {dumps(body)}\n\n"]))
                await self._send(h11.EndOfMessage())
            else:
                await self._send_whole(answer.status, body, headers)
            return
        wire = wire_of(answer, asked)
        if wire.streams:
            await self._stream(answer, wire)
        else:
            await self._send_whole(200, wire.whole())

    async def _stream(self, reply: Reply, wire: Wire) -> None:
        await self._send(h11.Response(status_code=200, headers=STREAM))
        await self._send_text(wire.begin())
        await self._fault(reply, 0)
        whole = pieces(reply)
        for number, piece in enumerate(
            islice(whole, reply.cut_after) if reply.ends_early else whole, start=1
        ):
            if reply.pause_seconds:
                await asyncio.sleep(reply.pause_seconds)
            await self._send_text(wire.piece(piece))
            await self._fault(reply, number)
        await self._send_text(wire.end())
        await self._send(h11.EndOfMessage())

    async def _fault(self, reply: Reply, number: int) -> None:
        if reply.cut_after == number and not reply.ends_early:
            raise _CutOff
        if reply.hang_after == number:
            self._server.hangs.set()
            gone = asyncio.create_task(self._reader.read(READ_BYTES))
            let = asyncio.create_task(self._server.may_go_on.wait())
            try:
                done, _ = await asyncio.wait({gone, let}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                gone.cancel()
                let.cancel()
                await asyncio.gather(gone, let, return_exceptions=True)
            if gone in done:
                self._server.left.set()
                raise _CutOff

    async def _send_whole(
        self, status: int, value: JsonValue, headers: Sequence[tuple[str, str]] = ()
    ) -> None:
        body = dumps(value).encode()
        length = ("content-length", str(len(body)))
        await self._send(h11.Response(status_code=status, headers=[*JSON, *headers, length]))
        await self._send(h11.Data(data=body))
        await self._send(h11.EndOfMessage())

    async def _send_text(self, texts: Iterator[str]) -> None:
        if text := "".join(texts):
            await self._send(h11.Data(data=text.encode()))

    async def _send(self, event: h11.Event) -> None:
        try:
            self._writer.write(self._http.send(event) or b"")
            await self._writer.drain()
        except ConnectionError:
            self._server.left.set()
            raise
