"""Turn a web page into the text that a reader sees. This is a program of its own, because a page can be made to take
for ever.

The program reads HTML and writes text, both in UTF-8. Its argument is the address that relative links count from.
"""

import re
import sys
from html.parser import HTMLParser
from typing import BinaryIO
from urllib.parse import urljoin, urlsplit

HIDDEN_TAGS = frozenset({"script", "style", "noscript", "template", "svg", "iframe", "object", "head"})
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
"""Blocks without an empty line before the next block."""
HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}


class PageReader(HTMLParser):
    """Collects the visible text: a line for each block, and each link with its address."""

    def __init__(self, base: str) -> None:
        super().__init__(convert_charrefs=True)
        self._base = base
        self._pieces: list[str] = []
        self._hidden: list[str] = []
        self._links: list[str | None] = []
        self._is_title = False
        self._is_plain = 0
        self.title = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a block, a link, or a hidden element."""
        if tag == "title" and "svg" not in self._hidden:
            self._is_title = True
        elif tag in HIDDEN_TAGS:
            self._hidden.append(tag)
        elif tag == "body":
            self._hidden.clear()  # a head may be left open
        if tag in BLOCKS:
            self._pieces.append("\n")
        self._is_plain += tag == "pre"
        if tag in HEADINGS:
            self._pieces.append(f"{HEADINGS[tag]} ")
        elif tag == "li":
            self._pieces.append("- ")
        elif tag == "a":
            self._links.append(self._target(dict(attrs).get("href")))
        elif tag == "img" and (alternative := dict(attrs).get("alt")):
            self.handle_data(f"[image: {alternative}]")

    def handle_endtag(self, tag: str) -> None:
        """End the element."""
        if tag == "title":
            self._is_title = False
        elif tag in self._hidden:
            del self._hidden[self._hidden.index(tag) :]
        elif tag == "pre":
            self._is_plain = max(0, self._is_plain - 1)
        elif tag == "a" and self._links and (target := self._links.pop()):
            self._pieces.append(f" ({target})")
        if tag in BLOCKS - LINES:
            self._pieces.append("\n")

    def handle_data(self, data: str) -> None:
        """Keep visible text."""
        if self._is_title:
            self.title += data
        elif self._is_plain and not self._hidden:
            self._pieces.append(data)
        elif not self._hidden:
            text = re.sub(r"\s+", " ", data)
            begins = not self._pieces or self._pieces[-1].endswith(("\n", " "))
            self._pieces.append(text.lstrip(" ") if begins else text)

    @property
    def text(self) -> str:
        """The text of the page below its title."""
        lines = [line.rstrip() for line in "".join(self._pieces).split("\n")]
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(line if line.strip() else "" for line in lines)).strip()
        title = " ".join(self.title.split())
        return f"{title}\n\n{text}" if title else text

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
    reader = PageReader(base)
    reader.feed(source.read().decode("utf-8", "replace"))
    reader.close()
    target.write(reader.text.encode("utf-8", "replace"))


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer, sys.argv[1])
