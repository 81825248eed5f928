"""Fetch one page over HTTP. This module is imported by the first fetch, because it loads an HTTP client.

Each hop of a redirect is checked like the first address, and each connection is made to an address that was checked.
"""

import zlib
from ssl import SSLContext
from typing import Final

import httpx2

from keryx.errors import ToolFailed
from keryx.tools.web.addresses import FetchPolicy, Resolve, find_addresses
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
    # One compression only, which is unpacked up to a limit.
    "Accept-Encoding": "gzip",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedPage:
    """The response of an address."""

    url: str
    """The address after all redirects."""
    media_type: str
    charset: str
    data: bytes | None
    """None if it is not text and was not read."""
    declared_size: int | None
    """The size in bytes, as the server declares it."""
    is_cut: bool

    @property
    def is_html(self) -> bool:
        """Whether it is an HTML page."""
        return self.media_type in _HTML


def make_client(*, policy: FetchPolicy, resolving: Resolve, trusted: SSLContext | None) -> "WebClient":
    """Return a client; call it in a thread, because reading the trusted certificates takes a while."""
    trusted = httpx2.create_ssl_context(trust_env=False) if trusted is None else trusted
    return WebClient(policy=policy, resolving=resolving, trusted=trusted)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebClient:
    """Fetches pages; keeps no cookie and no connection between two pages."""

    policy: FetchPolicy
    resolving: Resolve
    trusted: SSLContext

    async def fetch(self, start: str) -> FetchedPage:
        """Follow redirects to a page and return it, or raise ``ToolFailed``; the caller sets the time limit."""
        async with httpx2.AsyncClient(
            # No proxy from the environment: it would look the names up again.
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
                raise ToolFailed(
                    f"{start[:200]!r} is not a web address, or redirects to something else."
                ) from None
            except httpx2.HTTPError as error:
                raise ToolFailed(f"{start[:200]} cannot be fetched: {_reason(error)}.") from error
        raise ToolFailed(f"{start[:200]} redirects more than {HOPS_MAX} times.")

    async def _ask(self, client: httpx2.AsyncClient, url: httpx2.URL) -> httpx2.Response:
        """Send the request to one of the checked addresses of the host."""
        if url.scheme not in ("http", "https") or not url.host:
            raise ToolFailed(f"{str(url)[:200]!r} is not a web address; give one with http:// or https://.")
        if url.port is not None and url.port > _PORT_MAX:
            raise ToolFailed(f"{url.port} is not a port; ports are 0 to {_PORT_MAX}.")
        if url.userinfo:
            raise ToolFailed("The address contains a user name or password; give it without.")
        host = url.raw_host.decode("ascii")
        port = url.port or (443 if url.scheme == "https" else 80)
        failed: Exception | None = None
        for address in await find_addresses(host, port, policy=self.policy, resolving=self.resolving):
            request = client.build_request(
                "GET",
                url.copy_with(host=address),
                headers={"Host": url.netloc.decode("ascii")},
                # The certificate must belong to the host and not to the address.
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


async def _page(answer: httpx2.Response, url: str) -> FetchedPage:
    if answer.status_code >= _ERRORS_FROM:
        raise ToolFailed(f"{url[:200]} answered {answer.status_code} {answer.reason_phrase}.")
    media_type = answer.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
    size = answer.headers.get("content-length", "")
    is_text = media_type.startswith("text/") or media_type.endswith(_TEXT) or media_type in _HTML
    data = await _body(answer) if is_text else None
    return FetchedPage(
        url=url,
        media_type=media_type,
        charset=answer.charset_encoding or "utf-8",
        data=None if data is None else data[:BYTES_MAX],
        declared_size=int(size) if size.isdecimal() else None,
        is_cut=data is not None and len(data) > BYTES_MAX,
    )


async def _body(answer: httpx2.Response) -> bytes:
    """Return the unpacked body, cut one byte above the limit."""
    compressed = answer.headers.get("content-encoding", "identity").strip().lower()
    if compressed not in ("identity", "gzip", "x-gzip"):
        raise ToolFailed(f"The answer uses a compression that was not asked for ({compressed[:40]}).")
    unpacking = None if compressed == "identity" else zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    data = bytearray()
    async for piece in answer.aiter_raw():
        room = BYTES_MAX + 1 - len(data)
        try:
            # A few compressed bytes may unpack to millions.
            data += piece[:room] if unpacking is None else unpacking.decompress(piece, room)
        except zlib.error:
            raise ToolFailed("The compressed answer is broken.") from None
        if len(data) > BYTES_MAX:
            break
    return bytes(data)
