"""Find the spans of a text that must not be cut: links, code, emphasis, HTML entities and URLs.

Markdown as people and models write it, not the full specification. Spans nest and never cross. The time grows with the
number of marks, which is bounded.
"""

import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Final, NamedTuple

MARKS_MAX: Final = 100_000
"""A quarter of a second of work; a text with more marks is not written for readers."""

_URL: Final = r"ttps?://[^\s<>`*()\[\]]+(?:\([^\s<>`*()\[\]]*\)[^\s<>`*()\[\]]*)*"
_TARGET: Final = r"\([^\s()]*(?:\([^\s()]*\)[^\s()]*)*(?:[ ]\"[^\"\n]*\")?\)"
# All alternatives begin with one set of characters, so that a text without them is scanned quickly.
_MARK: Final = re.compile(
    rf"""
    [h&`*_~!\[\]\n\\](?:
        (?<=h)(?P<url>{_URL})
      | (?<=&)(?P<entity>(?:\#\w{{1,8}}|[A-Za-z]\w{{1,31}});)
      | (?<=`)(?P<code>`*)
      | (?<=\*)(?P<stars>\**) | (?<=_)(?P<lines>_*) | (?<=~)(?P<struck>~)
      | (?<=\[)(?P<opens>\[*) | (?<=!)(?P<shows>\[)
      | (?<=\])(?:(?P<links>{_TARGET})|(?P<closes>))
      | (?<=\n)(?P<paragraph>[ \t]*(?=\n))
      | (?<=\\)(?P<escaped>[^\w\s`])                  # within code nothing is escaped
    )""",
    re.VERBOSE,
)
_BRACKET: Final = "["


class Span(NamedTuple):
    """The start, and the end (exclusive)."""

    start: int
    stop: int


def find_spans(text: str, ranges: Iterable[tuple[int, int]]) -> list[Span]:
    """Return the spans within ranges of a text that hold no code blocks, outer spans before inner ones."""
    spans: list[Span] = []
    left = MARKS_MAX
    for start, stop in ranges:
        marks = list(islice(_MARK.finditer(text, start, stop), left))
        spans += _paired(text, marks)
        left -= len(marks) + 1
        if left <= 0:
            break
    spans.sort(key=lambda span: (span.start, -span.stop))
    return spans


def _paired(text: str, marks: "list[re.Match[str]]") -> list[Span]:
    closing = _closing_code(marks)
    pairs = _Pairs(text)
    spans: list[Span] = []
    after_code = 0
    for number, mark in enumerate(marks):
        if number < after_code:
            continue
        if number in closing:
            after_code = closing[number] + 1
            spans.append(Span(mark.start(), marks[closing[number]].end()))
        elif (began := pairs.ended_by(mark)) is not None:
            spans.append(Span(began, mark.end()))
    return spans


def _closing_code(marks: "list[re.Match[str]]") -> dict[int, int]:
    """Map each opening run of backticks to its closing run: the next one of the same length in the paragraph."""
    closing: dict[int, int] = {}
    last: dict[str, int] = {}
    for number in range(len(marks) - 1, -1, -1):
        kind = marks[number].lastgroup
        if kind == "paragraph":
            last.clear()
        elif kind == "code":
            run = marks[number][0]
            if run in last:
                closing[number] = last[run]
            last[run] = number
    return closing


class _Pairs:
    """Pairs the marks that open with those that close."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._open: list[tuple[str, int]] = []
        self._counts: Counter[str] = Counter()

    def ended_by(self, mark: "re.Match[str]") -> int | None:
        """Return the start of the span that ends with this mark, or None."""
        match mark.lastgroup:
            case "url" | "entity":
                return mark.start()
            case "stars" | "lines" | "struck":
                return self._emphasis(mark)
            case "opens":
                self._push(_BRACKET, mark.end() - 1)
            case "shows":
                self._push(_BRACKET, mark.start())
            case "links":
                return self._pop(_BRACKET)
            case "closes":
                self._pop(_BRACKET)
            case "paragraph":
                self._open.clear()
                self._counts.clear()
            case _:
                pass
        return None

    def _emphasis(self, mark: "re.Match[str]") -> int | None:
        run, start, stop = mark[0], mark.start(), mark.end()
        before, after = self._text[start - 1 : start], self._text[stop : stop + 1]
        if run[0] == "_" and before.isalnum() and after.isalnum():
            return None  # a_name_like_this
        opened = self._pop(run) if before and not before.isspace() else None
        if opened is None and after and not after.isspace():
            self._push(run, start)
        return opened

    def _push(self, mark: str, start: int) -> None:
        self._open.append((mark, start))
        self._counts[mark] += 1

    def _pop(self, mark: str) -> int | None:
        """Return the start of the last open mark of a kind, and drop the marks opened after it: they never close."""
        while self._counts[mark]:
            last, start = self._open.pop()
            self._counts[last] -= 1
            if last == mark:
                return start
        return None
