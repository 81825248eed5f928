"""Turns a web page into the text a reader sees: a program of its own, because a page may be made to take for ever.

Reads HTML as UTF-8 and writes text as UTF-8; its argument is the address that links count from.
"""

import re
import sys
from html.parser import HTMLParser
from typing import BinaryIO
from urllib.parse import urljoin, urlsplit

UNSEEN = frozenset({"script", "style", "noscript", "template", "svg", "iframe", "object", "head"})
# fmt: off
BLOCKS = frozenset(
    {
        "address", "article", "aside", "blockquote", "body", "br", "dd", "div", "dl", "dt", "fieldset",
        "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li",
        "main", "nav", "ol", "option", "p", "pre", "section", "summary", "table", "tbody", "td", "th",
        "thead", "title", "tr", "ul",
    }
)
# fmt: on
LINES = frozenset({"br", "dd", "dt", "hr", "li", "option", "td", "th", "tr"})
"""Blocks with nothing between them and the next."""
HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}


class Reader(HTMLParser):
    """Collects what is seen, a line for each block, links with their addresses behind them."""

    def __init__(self, base: str) -> None:
        super().__init__(convert_charrefs=True)
        self._base = base
        self._pieces: list[str] = []
        self._unseen: list[str] = []
        self._links: list[str | None] = []
        self._is_title = False
        self._is_plain = 0
        self.title = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a block, a link, or something nobody sees."""
        if tag == "title" and "svg" not in self._unseen:
            self._is_title = True
        elif tag in UNSEEN:
            self._unseen.append(tag)
        elif tag == "body":
            self._unseen.clear()  # a head may be left open
        if tag in BLOCKS:
            self._pieces.append("\n")
        self._is_plain += tag == "pre"
        if tag in HEADINGS:
            self._pieces.append(f"{HEADINGS[tag]} ")
        elif tag == "li":
            self._pieces.append("- ")
        elif tag == "a":
            self._links.append(self._target(dict(attrs).get("href")))
        elif tag == "img" and (told := dict(attrs).get("alt")):
            self.handle_data(f"[image: {told}]")

    def handle_endtag(self, tag: str) -> None:
        """End what was begun."""
        if tag == "title":
            self._is_title = False
        elif tag in self._unseen:
            del self._unseen[self._unseen.index(tag) :]
        elif tag == "pre":
            self._is_plain = max(0, self._is_plain - 1)
        elif tag == "a" and self._links and (target := self._links.pop()):
            self._pieces.append(f" ({target})")
        if tag in BLOCKS - LINES:
            self._pieces.append("\n")

    def handle_data(self, data: str) -> None:
        """Keep what is seen."""
        if self._is_title:
            self.title += data
        elif self._is_plain and not self._unseen:
            self._pieces.append(data)
        elif not self._unseen:
            text = re.sub(r"\s+", " ", data)
            begins = not self._pieces or self._pieces[-1].endswith(("\n", " "))
            self._pieces.append(text.lstrip(" ") if begins else text)

    @property
    def text(self) -> str:
        """What the page says, under its title."""
        lines = [line.rstrip() for line in "".join(self._pieces).split("\n")]
        said = re.sub(r"\n{3,}", "\n\n", "\n".join(line if line.strip() else "" for line in lines)).strip()
        title = " ".join(self.title.split())
        return f"{title}\n\n{said}" if title else said

    def _target(self, href: str | None) -> str | None:
        if not href or href.startswith("#"):
            return None
        try:
            target = urljoin(self._base, href)
            return target if urlsplit(target).scheme in ("http", "https") else None
        except ValueError:
            return None


def main(source: BinaryIO, target: BinaryIO, base: str) -> None:
    """Turn one page into text."""
    reader = Reader(base)
    reader.feed(source.read().decode("utf-8", "replace"))
    reader.close()
    target.write(reader.text.encode("utf-8", "replace"))


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer, sys.argv[1])
