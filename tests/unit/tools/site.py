"""A web site in a test: answers every path with the bytes it is given, and notes what it was asked."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class Site:
    """Where it is, and what it heard."""

    port: int
    asked: list[str] = field(default_factory=list)


def page(body: bytes | str, *headers: str, status: str = "200 OK", media_type: str = "text/html") -> bytes:
    """Return a whole answer."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(data)}", "Connection: close", *headers]
    if media_type:
        lines.append(f"Content-Type: {media_type}")
    return "\r\n".join([*lines, "", ""]).encode() + data


def moved(target: str, *headers: str) -> bytes:
    return page("", f"Location: {target}", *headers, status="302 Found")


@asynccontextmanager
async def site_with(
    pages: Mapping[str, bytes | None], *, secured: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[Site]:
    """Run a site; a path whose answer is None is never answered."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        site.asked.append(head)
        said = pages.get(head.split()[1], page("gone", status="404 Not Found"))
        if said is None:
            await reader.read()
        else:
            writer.write(said)
        writer.close()

    server = await asyncio.start_server(answer, host, 0, ssl=secured)
    site = Site(port=server.sockets[0].getsockname()[1])
    async with server:
        yield site
