"""Gets one page over HTTP. Loaded by the first page that is fetched, because nobody else needs an HTTP client.

Every hop of a redirect is judged like the first address, and each connection is made to an address that was judged.
"""

import zlib
from ssl import SSLContext
from typing import Final

import httpx2

from keryx.tools.addresses import Reach, Resolve, find_addresses
from keryx.tools.tool import ToolFailed
from keryx.values import dataclass

CONNECT_SECONDS: Final = 8.0
HOPS_MAX: Final = 5
BYTES_MAX: Final = 2_000_000

_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_ERRORS_FROM: Final = 400
_PORT_MAX: Final = 65_535
_TEXT: Final = ("json", "xml", "yaml", "javascript", "toml")
_HEADERS: Final = {
    "User-Agent": "Keryx (fetch_url)",
    "Accept": "text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.5",
    # Packed by one method only, which is unpacked up to a limit.
    "Accept-Encoding": "gzip",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What an address answered."""

    url: str
    """Where it was found in the end."""
    media_type: str
    charset: str
    data: bytes | None
    """None for what is no text and was not read."""
    size_told: int | None
    """How many bytes there are, as the server says."""
    is_cut: bool

    @property
    def is_html(self) -> bool:
        """Whether it is for a browser."""
        return self.media_type in _HTML


def make_client(*, reach: Reach, resolving: Resolve, trusted: SSLContext | None) -> "WebClient":
    """Return a client; for a thread, because reading whom everybody trusts takes a while."""
    trusted = httpx2.create_ssl_context(trust_env=False) if trusted is None else trusted
    return WebClient(reach=reach, resolving=resolving, trusted=trusted)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebClient:
    """Fetches pages; each as if it were the first."""

    reach: Reach
    resolving: Resolve
    trusted: SSLContext

    async def fetch(self, start: str) -> Page:
        """Go from address to address until one answers with a page, or raise ``ToolFailed``; it may take for ever."""
        async with httpx2.AsyncClient(
            # Nobody else's proxy: it would look the names up anew.
            trust_env=False,
            verify=self.trusted,
            headers=_HEADERS,
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
        ) as client:
            try:
                url = httpx2.URL(start)
                for _ in range(HOPS_MAX + 1):
                    client.cookies.clear()
                    answer = await self._ask(client, url)
                    try:
                        if not answer.has_redirect_location:
                            return await _page(answer, str(url))
                        url = url.join(answer.headers["location"])
                    finally:
                        await answer.aclose()
            except httpx2.InvalidURL:
                raise ToolFailed(f"{start[:200]!r} is no address, or leads to none.") from None
            except httpx2.HTTPError as error:
                raise ToolFailed(f"{start[:200]} cannot be fetched: {_reason(error)}.") from error
        raise ToolFailed(f"{start[:200]} leads on more than {HOPS_MAX} times.")

    async def _ask(self, client: httpx2.AsyncClient, url: httpx2.URL) -> httpx2.Response:
        """Ask the machine behind an address, at one of its addresses that were judged."""
        if url.scheme not in ("http", "https") or not url.host:
            raise ToolFailed(f"{str(url)[:200]!r} is no web address; give one with http:// or https://.")
        if url.port is not None and url.port > _PORT_MAX:
            raise ToolFailed(f"{url.port} is no port; there are 0 to {_PORT_MAX}.")
        if url.userinfo:
            raise ToolFailed("The address holds a name or password; nothing is fetched with one.")
        host = url.raw_host.decode("ascii")
        port = url.port or (443 if url.scheme == "https" else 80)
        failed: Exception | None = None
        for address in await find_addresses(host, port, reach=self.reach, resolving=self.resolving):
            request = client.build_request(
                "GET",
                url.copy_with(host=address),
                headers={"Host": url.netloc.decode("ascii")},
                # The certificate must be the host's, and not the address's.
                extensions={} if address == host else {"sni_hostname": host},
            )
            try:
                return await client.send(request, stream=True, follow_redirects=False)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failed = error
        reason = "it has no address" if failed is None else _reason(failed)
        raise ToolFailed(f"{str(url)[:200]} cannot be reached: {reason}.") from failed


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


async def _page(answer: httpx2.Response, url: str) -> Page:
    if answer.status_code >= _ERRORS_FROM:
        raise ToolFailed(f"{url[:200]} answered {answer.status_code} {answer.reason_phrase}.")
    media_type = answer.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
    size = answer.headers.get("content-length", "")
    is_text = media_type.startswith("text/") or media_type.endswith(_TEXT) or media_type in _HTML
    data = await _body(answer) if is_text else None
    return Page(
        url=url,
        media_type=media_type,
        charset=answer.charset_encoding or "utf-8",
        data=None if data is None else data[:BYTES_MAX],
        size_told=int(size) if size.isdecimal() else None,
        is_cut=data is not None and len(data) > BYTES_MAX,
    )


async def _body(answer: httpx2.Response) -> bytes:
    """Return what was answered, unpacked; where it is more than the limit, a byte more than that."""
    packed = answer.headers.get("content-encoding", "identity").strip().lower()
    if packed not in ("identity", "gzip", "x-gzip"):
        raise ToolFailed(f"The answer is packed by a method that was not asked for ({packed[:40]}).")
    unpacking = None if packed == "identity" else zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    data = bytearray()
    async for piece in answer.aiter_raw():
        room = BYTES_MAX + 1 - len(data)
        try:
            # A few packed bytes may stand for millions.
            data += piece[:room] if unpacking is None else unpacking.decompress(piece, room)
        except zlib.error:
            raise ToolFailed("The answer is packed in a broken way.") from None
        if len(data) > BYTES_MAX:
            break
    return bytes(data)
