"""Pages of the web: read as text, from public addresses alone, hop by hop."""

import gzip
import io
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from keryx.errors import ToolFailed
from keryx.tools.programs import page_text
from keryx.tools.web.addresses import FetchPolicy, is_public
from keryx.tools.web.fetch_url import WRITTEN_BY_OTHERS, FetchUrl
from keryx.tools.web.web_client import BYTES_MAX
from tests.unit.tools.site import moved, page, site_with
from tests.unit.tools.using import called

HERE = frozenset({"pages.test", "127.0.0.1"})
CERTIFICATE = Path(__file__).with_name("pages_test.pem")


class Names:
    """A name service; a name may stand for something else each time it is looked up."""

    def __init__(self, known: Mapping[str, Sequence[str]]) -> None:
        self._known = {name: list(found) for name, found in known.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:  # noqa: ARG002 - the same for every one
        self.asked.append(host)
        found = self._known.get(host)
        if found is None:
            raise OSError("unknown")
        return [found.pop(0)] if len(found) > 1 else found


def fetching(
    *,
    seconds: float = 60,
    trusted: ssl.SSLContext | None = None,
    names: Mapping[str, Sequence[str]] | None = None,
) -> FetchUrl:
    """A tool that may reach this machine as ``pages.test``."""
    known = Names({"pages.test": ["127.0.0.1"], "127.0.0.1": ["127.0.0.1"], **(names or {})})
    return FetchUrl(FetchPolicy(allowed=HERE), resolving=known, seconds=seconds, trusted=trusted)


async def refused(tool: FetchUrl, url: str) -> str:
    with pytest.raises(ToolFailed) as failure:
        await called(tool, url=url)
    return str(failure.value)


# ------------------------------------------------------------------------------------------------ what is read

HTML = """<!doctype html><html><head><title>Tea &amp; more</title><style>p {}</style></head>
<body><h1>Tea</h1><p>Green   <b>tea</b> is
green.</p><ul><li>one</li><li>two</li></ul><script>alert(1)</script>
<a href="/more?x=1">more</a> <a href="#top">up</a> <a href="javascript:x()">no</a> <img alt="a cup" src="c.png">
<pre>a
  b</pre></body></html>"""


async def test_a_page_is_read_as_its_visible_text() -> None:
    async with site_with({"/tea": page(HTML, media_type="text/html; charset=utf-8")}) as site:
        tool = fetching()
        base = f"http://pages.test:{site.port}"
        told = await called(tool, url=f"{base}/tea")
    assert (tool.offer.effect, tool.offer.toolset) == ("pure", "web")
    assert told == (
        f"{base}/tea (text/html). {WRITTEN_BY_OTHERS}\n\n"
        "Tea & more\n\n# Tea\n\nGreen tea is green.\n\n- one\n- two\n"
        f"more ({base}/more?x=1) up no [image: a cup]\na\n  b"
    )
    (asked,) = site.asked
    assert asked.startswith("GET /tea HTTP/1.1\r\n")
    assert f"\r\nhost: pages.test:{site.port}\r\n" in asked.lower()


async def test_other_text_is_read_unchanged_and_binary_content_only_named() -> None:
    pages = {
        "/json": page('{"a": 1}', media_type="application/ld+json"),
        "/latin": page("caf\xe9".encode("latin-1"), media_type="text/plain; charset=latin-1"),
        "/odd": page("tea", media_type="text/plain; charset=klingon"),
        "/untyped": page("tea", media_type=""),
        "/empty": page("", media_type="text/plain"),
        "/picture": page(b"\x89PNG\0", media_type="image/png"),
        "/pretends": page(b"tea\0", media_type="text/plain"),
        "/endless": b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n",
    }
    async with site_with(pages) as site:
        told = {
            path: (await called(fetching(), url=f"http://pages.test:{site.port}{path}")).split("\n\n")[-1]
            for path in pages
        }
    assert (told["/json"], told["/latin"], told["/odd"], told["/untyped"]) == (
        '{"a": 1}',
        "café",
        "tea",
        "tea",
    )
    assert told["/empty"] == "The page is empty."
    assert told["/picture"].endswith("is binary (image/png, 5 bytes); only text is shown.")
    assert told["/pretends"].endswith("is binary (text/plain, 4 bytes); only text is shown.")
    assert told["/endless"].endswith("is binary (video/mp4, of unknown size); only text is shown.")


async def test_a_compressed_answer_is_unpacked_up_to_the_limit() -> None:
    text = {"media_type": "text/plain"}
    pages = {
        "/gzip": page(gzip.compress(b"tea"), "Content-Encoding: gzip", **text),
        "/bomb": page(gzip.compress(b"x" * (20 * BYTES_MAX)), "Content-Encoding: gzip", **text),
        "/long": page(b"x" * (BYTES_MAX + 1), **text),
        "/broken": page(b"tea", "Content-Encoding: gzip", **text),
        "/other": page(b"tea", "Content-Encoding: br", **text),
    }
    async with site_with(pages) as site:
        base = f"http://pages.test:{site.port}"
        assert (await called(fetching(), url=f"{base}/gzip")).endswith("\n\ntea")
        for path in ("/bomb", "/long"):
            told = await called(fetching(), url=f"{base}{path}")
            assert f"Only its first {BYTES_MAX} bytes were read." in told
            assert told.endswith("\n\n" + "x" * BYTES_MAX)
        assert "compressed answer is broken" in await refused(fetching(), f"{base}/broken")
        assert "not asked for (br)" in await refused(fetching(), f"{base}/other")


async def test_failures_are_reported() -> None:
    async with site_with({"/never": None, "/cut": b"HTTP/1.1 200"}) as site:
        base = f"http://pages.test:{site.port}"
        assert await refused(fetching(), f"{base}/none") == f"{base}/none answered 404 Not Found."
        assert "did not answer within 0.2 s" in await refused(fetching(seconds=0.2), f"{base}/never")
        assert "cannot be fetched: " in await refused(fetching(), f"{base}/cut")
    assert "cannot be reached: " in await refused(fetching(), f"{base}/none")
    assert await refused(fetching(), "http://nowhere.test/") == "There is no host 'nowhere.test'."
    assert "it has no address" in await refused(fetching(names={"empty.test": []}), "http://empty.test/")
    for wrong in ("ftp://pages.test/", "file:///etc/passwd", "pages.test", "http://"):
        assert "is not a web address" in await refused(fetching(), wrong)
    assert "is not a port" in await refused(fetching(), "http://pages.test:99999999/")
    assert "is not a web address" in await refused(fetching(), "http://pages.test:tea/")
    assert "name or password" in await refused(fetching(), "http://ana:tea@pages.test/")


# ------------------------------------------------------------------------------------------------ where from


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.9.1", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254",
        "100.64.0.1", "224.0.0.1", "255.255.255.255", "192.0.2.1", "::1", "::", "fe80::1%eth0", "fc00::1", "ff02::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "nonsense",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    ],
)  # fmt: skip
def test_a_private_address_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "8.8.8.8", "2606:4700::1111", "64:ff9b::808:808"])
def test_a_public_address_is_public(address: str) -> None:
    assert is_public(address)


async def test_a_private_address_is_refused_under_any_name() -> None:
    async with site_with({"/": page("tea")}) as site:
        tool = FetchUrl(FetchPolicy())
        for host in ("127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]"):
            told = await refused(tool, f"http://{host}:{site.port}/")
            assert "an address of a private network" in told, host
        assert site.asked == []


async def test_one_private_address_is_enough_to_refuse_a_host() -> None:
    async def both(host: str, port: int) -> Sequence[str]:
        return ["93.184.216.34", "10.0.0.1"]

    told = await refused(FetchUrl(FetchPolicy(), resolving=both), "http://both.test/")
    assert "'both.test' is at 10.0.0.1" in told
    assert "tools.fetch.allow" in told


async def test_private_addresses_are_fetched_if_the_owner_allows_it() -> None:
    async with site_with({"/": page("tea")}) as site:
        told = await called(FetchUrl(FetchPolicy(private=True)), url=f"http://127.0.0.1:{site.port}/")
    assert told.endswith("\n\ntea")


async def test_a_name_is_looked_up_once_and_the_checked_address_is_used() -> None:
    """A name that stands for another machine a moment later gains nothing; no system knows this one."""
    names = Names({"pages.test": ["127.0.0.1", "127.0.0.2"]})
    async with site_with({"/": page("tea")}) as site:
        tool = FetchUrl(FetchPolicy(allowed=HERE), resolving=names)
        assert (await called(tool, url=f"http://pages.test:{site.port}/")).endswith("tea")
    assert names.asked == ["pages.test"]


async def test_every_redirect_is_checked() -> None:
    pages = {
        "/start": moved("/next", "Set-Cookie: a=1"),
        "/next": moved("//pages.test:{port}/end"),
        "/end": page("tea"),
        "/inside": moved("http://metadata.test/latest"),
        "/file": moved("file:///etc/passwd"),
        "/round": moved("/round"),
    }
    async with site_with(pages) as site:
        pages["/next"] = moved(f"//pages.test:{site.port}/end")
        base = f"http://127.0.0.1:{site.port}"
        tool = fetching(names={"metadata.test": ["169.254.169.254"]})
        assert (await called(tool, url=f"{base}/start")).startswith(
            f"http://pages.test:{site.port}/end (text/html)."
        )
        assert all("cookie" not in asked.lower() for asked in site.asked)
        assert "'metadata.test' is at 169.254.169.254" in await refused(tool, f"{base}/inside")
        await refused(tool, f"{base}/file")
        assert "redirects more than 5 times" in await refused(tool, f"{base}/round")


async def test_the_next_address_is_tried_if_the_first_does_not_answer() -> None:
    async def two(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.2", "127.0.0.1"]

    async with site_with({"/": page("tea")}) as site:
        tool = FetchUrl(FetchPolicy(private=True), resolving=two)
        assert (await called(tool, url=f"http://pages.test:{site.port}/")).endswith("tea")


async def test_the_certificate_must_be_that_of_the_name() -> None:
    secured = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    secured.load_cert_chain(CERTIFICATE)
    trusted = ssl.create_default_context(cafile=str(CERTIFICATE))
    async with site_with({"/": page("tea")}, secured=secured) as site:
        tool = fetching(trusted=trusted)
        assert (await called(tool, url=f"https://pages.test:{site.port}/")).endswith("tea")
        other = FetchUrl(
            FetchPolicy(private=True), resolving=Names({"other.test": ["127.0.0.1"]}), trusted=trusted
        )
        assert "CERTIFICATE_VERIFY_FAILED" in await refused(other, f"https://other.test:{site.port}/")
        assert "CERTIFICATE_VERIFY_FAILED" in await refused(fetching(), f"https://pages.test:{site.port}/")


# ------------------------------------------------------------------------------------------------ pages as text


def seen(html: str) -> str:
    told = io.BytesIO()
    page_text.main(io.BytesIO(html.encode()), told, "https://pages.test/a/")
    return told.getvalue().decode()


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (HTML.partition("<a")[0], "Tea & more\n\n# Tea\n\nGreen tea is green.\n\n- one\n- two"),
        ("just text", "just text"),
        ("", ""),
        ("<head><title>t</title><body>left open", "t\n\nleft open"),
        ("<p>a<script>x</script>b", "ab"),
        ("<svg><title>icon</title></svg>b", "b"),
        ('<a href="b">c</a></a>', "c (https://pages.test/a/b)"),
        ('<a href="http://[">c</a><a>d</a>', "cd"),
        ("a</pre></title></p>b", "a\n\nb"),
        ("<img><img alt=x>", "[image: x]"),
        ("<pre> a\n\n\n\n b</pre>", "a\n\n b"),
        ("<table><tr><td>1<td>2</table>", "1\n2"),
    ],
)
def test_the_visible_text_of_a_page(html: str, text: str) -> None:
    assert seen(html) == text
