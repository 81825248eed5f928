"""Read one HTTP request with h11 and send one answer. The connection is closed afterwards."""

import asyncio
from contextlib import suppress
from typing import Final

import h11

from keryx.platforms.webhook.wire import Problem, Stored

BODY_BYTES_MAX: Final = 1_000_000

_CHUNK_BYTES: Final = 65_536
_LINGER_SECONDS: Final = 2.0
_TOO_LARGE: Final = Problem(status=413, detail=f"The body may have {BODY_BYTES_MAX:,} bytes at most.")


class HttpRequest:
    """One HTTP request, and the one answer to it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.headers: dict[str, str] = {}
        self._reader = reader
        self._writer = writer
        self._method = b""
        self._http = h11.Connection(h11.SERVER)

    async def read(self) -> bytes | Problem | None:
        """Return the body, or the problem with the request; None if the client closed the connection."""
        body = bytearray()
        try:
            while True:
                event = self._http.next_event()
                if event is h11.NEED_DATA:
                    await self._read_on()
                elif isinstance(event, h11.Request):
                    refused = self._begin(event)
                    if refused is not None:
                        return refused
                elif isinstance(event, h11.Data):
                    body += event.data
                    if len(body) > BODY_BYTES_MAX:
                        return _TOO_LARGE
                else:
                    return bytes(body) if isinstance(event, h11.EndOfMessage) else None
        except h11.RemoteProtocolError as error:
            return Problem(status=error.error_status_hint, detail=f"This is not valid HTTP: {error}.")

    async def answer(self, answer: Problem | Stored) -> None:
        """Send the answer, and give the client time to read it."""
        body = answer.to_json()
        headers = [
            ("connection", "close"),
            ("content-type", answer.media_type),
            ("content-length", str(len(body))),
            *answer.headers,
        ]
        events: list[h11.Event] = [
            h11.Response(status_code=answer.status, headers=headers),
            h11.EndOfMessage(),
        ]
        if self._method != b"HEAD":
            events.insert(1, h11.Data(data=body))
        self._writer.write(b"".join(self._http.send(event) or b"" for event in events))
        await self._writer.drain()
        await self._linger()

    async def _read_on(self) -> None:
        if self._http.they_are_waiting_for_100_continue:
            go_ahead = h11.InformationalResponse(status_code=100, headers=[])
            self._writer.write(self._http.send(go_ahead) or b"")
        self._http.receive_data(await self._reader.read(_CHUNK_BYTES))

    def _begin(self, request: h11.Request) -> Problem | None:
        self._method = request.method
        for raw_name, raw_value in request.headers:
            name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
            self.headers[name] = f"{self.headers[name]}, {value}" if name in self.headers else value
        if request.target.partition(b"?")[0] != b"/":
            return Problem(status=404, detail="This path does not exist. Send messages to /.")
        if request.method != b"POST":
            return Problem(status=405, detail="Send messages with POST.", headers=(("allow", "POST"),))
        if int(self.headers.get("content-length", "0")) > BODY_BYTES_MAX:
            return _TOO_LARGE
        return None

    async def _linger(self) -> None:
        """Read the rest of the request: closing the connection before would reset it and lose the answer."""
        self._writer.write_eof()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_SECONDS):
                while await self._reader.read(_CHUNK_BYTES):
                    pass
