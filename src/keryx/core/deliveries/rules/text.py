"""Cut a text into messages of the length that a platform accepts, without breaking what readers see.

Cuts fall between paragraphs, lines, sentences or words where that is possible, never inside a visible character, and
never inside a link, code, emphasis, HTML entity or URL that fits into a message by itself; a code block that must be
cut is closed at the end of one message and opened again in the next. Each piece is read by itself: a line that looks
like the fence of a code block there is one. The time is linear in the length of the text.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Final

from keryx.core.conversations.rules.part import MediaPart, Part, TextPart
from keryx.core.deliveries.rules.pieces import MediaPiece, Piece, TextPiece, TextUnit
from keryx.core.deliveries.rules.spans import Span, find_spans
from keryx.core.values.graphemes import safe_end
from keryx.errors import InvalidValue
from keryx.values import dataclass

TEXT_MAX_LEAST: Final = 4
"""Below this, one character may not fit: UTF-8 takes four bytes for some."""

# Backticks after opening backticks are code within a line, not a fence.
_FENCE: Final = re.compile(r"^ {0,3}(?:(`{3,})([^`\n]*)|(~{3,})([^\n]*))$", re.MULTILINE)
_FENCE_BEGINS: Final = re.compile(r" {0,3}(?:```|~~~)")
_BREAKS: Final = ("\n\n", "\n", ". ", " ")
_SPACE: Final = re.compile(r"\s*")
_BLOCKS_MAX: Final = 10_000
"""After this many code blocks, spans are no longer searched: the text is not written for readers."""
_LEADS: Final = "([{<\"'*_"
"""Characters that belong to the following word."""

_UNITS: Final[dict[TextUnit, Callable[[str], int]]] = {
    "characters": len,
    "utf-16": lambda text: len(text.encode("utf-16-le", "surrogatepass")) // 2,
    "bytes": lambda text: len(text.encode("utf-8", "surrogatepass")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fence:
    """An open code block: the line that opens it again, and the marks that close it."""

    line: str
    marks: str

    @property
    def opening(self) -> str:
        return f"{self.line}\n"

    @property
    def closing(self) -> str:
        return f"\n{self.marks}"


def text_pieces(
    parts: tuple[Part, ...], *, text_max: int, unit: TextUnit = "characters"
) -> tuple[Piece, ...]:
    """Return the pieces of a delivery in order: its texts, cut to fit into messages, and its media."""
    pieces: list[Piece] = []
    for part in parts:
        if isinstance(part, TextPart):
            pieces += [TextPiece(text=text) for text in cut_text(part.text, text_max=text_max, unit=unit)]
        elif isinstance(part, MediaPart):
            pieces.append(MediaPiece(media=part))
    return tuple(pieces)


def text_size(text: str, unit: TextUnit) -> int:
    """Return the length of a text for a platform that counts in ``unit``."""
    return _UNITS[unit](text)


def cut_text(text: str, *, text_max: int, unit: TextUnit = "characters") -> list[str]:
    """Return the pieces of a text, of at most ``text_max`` units each, without the white space at the cuts."""
    if text_max < TEXT_MAX_LEAST:
        raise InvalidValue(
            f"text_max {text_max}: a message must be able to hold {TEXT_MAX_LEAST} {unit} at least"
        )
    cutter = _Cutter(text.strip("\n"), text_max=text_max, size=_UNITS[unit])
    pieces: list[str] = []
    while (piece := cutter.take()) is not None:
        if piece.strip():
            pieces.append(piece)
    return pieces


class _Cutter:
    """Takes pieces from the front of a text; each step reads no further than one message."""

    def __init__(self, text: str, *, text_max: int, size: Callable[[str], int]) -> None:
        self._text = text
        self._text_max = text_max
        self._size = size
        self._at = 0
        self._opened: _Fence | None = None
        self._fences: dict[str, _Fence | None] = {}
        self._spans: list[Span] | None = None
        """The outermost spans that must not be cut, in order; found only if the text must be cut."""

    def take(self) -> str | None:
        """Return the next piece, or None at the end. The caller drops pieces of white space only."""
        if self._at >= len(self._text):
            return None
        opening = self._opened.opening if self._opened else ""
        # A character takes at least one unit, so the piece has at most text_max. The next one may belong to the last.
        window = self._text[self._at : self._at + self._text_max + 1]
        if self._at + len(window) == len(self._text) and self._size(opening + window) <= self._text_max:
            self._at = len(self._text)
            return opening + window
        room = self._text_max - self._size(opening) - self._room_to_close(window)
        cut = self._cut_before(self._at + _fitting(window, room, self._size))
        return self._part_at(cut, opening + self._text[self._at : cut])

    def _part_at(self, cut: int, piece: str) -> str:
        """Move behind a cut; return the piece before it, without trailing blanks or with its code block closed."""
        opened = self._open_at(cut)
        if opened is None:
            self._opened, self._at = None, self._after_space(cut)
            return piece.rstrip()
        at_line_end = self._text[cut] == "\n"
        last = _FENCE.match(self._text, cut + 1) if at_line_end else None
        if last is not None and self._next_state(opened, last) is None:
            # The closing fence is the next line: include it, or it would stand alone in the next message.
            whole = f"{piece}\n{last[0].rstrip()}"
            if self._size(whole) <= self._text_max:
                self._opened, self._at = None, self._after_space(last.end())
                return whole
        self._opened, self._at = opened, cut + 1 if at_line_end else cut
        return piece + opened.closing

    def _room_to_close(self, window: str) -> int:
        """Return how many units the closing of a code block in the window may take."""
        lines = {match[0]: match for match in _FENCE.finditer(window)}
        seen = [self._opened, *(self._next_state(None, match) for match in lines.values())]
        return max((self._size(fence.closing) for fence in seen if fence is not None), default=0)

    def _cut_before(self, end: int) -> int:
        """Return the best place to cut after the piece's start and not after ``end``."""
        line = self._text.rfind("\n", self._at, end) + 1
        if line > self._at and self._text[end] != "\n" and _FENCE_BEGINS.match(self._text, line):
            # Do not cut the line that opens or closes a block.
            end = max(line - 1, self._at + 1)
        cut = self._break_before(end)
        if self._open_at(cut) is None:
            return cut
        # Inside a block, cut only between lines, or within a line that is longer than a message.
        line_end = self._text.rfind("\n", self._at + 1, end + 1)
        cut = line_end if line_end > 0 else end
        begins = self._bare_opening(cut)
        if begins is None:
            return cut
        # This message would hold the opening line only: begin the block in the next message, or fill this one.
        return begins if self._text[self._at : begins].strip() else end

    def _break_before(self, end: int) -> int:
        # A break in the first half would leave the message too short: a worse break later is better.
        earliest = max(self._at + (end - self._at) // 2, self._at + 1)
        last = self._before_span(end)
        for mark in _BREAKS:
            at = self._text.rfind(mark, earliest, last + 1)
            while at > 0 and self._is_bad_break(at, mark, end):
                at = self._text.rfind(mark, earliest, at + len(mark) - 1)
            if at > 0:
                return at + len(mark.rstrip(" \n"))
        return last

    def _is_bad_break(self, at: int, mark: str, end: int) -> bool:
        """Return whether a break cuts a span, or makes the start of the next message look like a code block."""
        if "\n" not in mark and _FENCE_BEGINS.match(self._text, at + len(mark)):
            return True
        return self._parted(at + len(mark.rstrip(" \n")), end) is not None

    def _before_span(self, end: int) -> int:
        """Return ``end``, or the start of the span that it would cut, including brackets and quotes before the span."""
        parted = self._parted(end, end)
        if parted is None:
            return end
        before = self._text[self._at : parted.start].rstrip(_LEADS)
        return self._at + len(before) if before.strip() else parted.start

    def _parted(self, cut: int, end: int) -> Span | None:
        """Return the span that a cut would break, unless the span starts the piece and is longer than the piece."""
        if self._spans is None:
            self._spans = self._whole_spans()
        number = bisect_left(self._spans, cut, key=lambda span: span.start) - 1
        if number < 0:
            return None
        span = self._spans[number]
        in_the_way = cut < span.stop and (span.start > self._at or span.stop <= end)
        return span if in_the_way else None

    def _whole_spans(self) -> list[Span]:
        whole: list[Span] = []
        for span in find_spans(self._text, self._outside_blocks()):
            is_within = whole and span.start < whole[-1].stop
            if not is_within and self._may_begin_a_message(span):
                whole.append(span)
        return whole

    def _may_begin_a_message(self, span: Span) -> bool:
        if span.stop - span.start > self._text_max or _FENCE_BEGINS.match(self._text, span.start):
            return False
        return self._size(self._text[span.start : span.stop]) <= self._text_max

    def _outside_blocks(self) -> Iterator[tuple[int, int]]:
        opened, start = None, 0
        for number, match in enumerate(_FENCE.finditer(self._text)):
            if number == _BLOCKS_MAX:
                return
            if opened is None:
                yield start, match.start()
            opened, start = self._next_state(opened, match), match.end()
        if opened is None:
            yield start, len(self._text)

    def _open_at(self, cut: int) -> _Fence | None:
        opened = self._opened
        for match in _FENCE.finditer(self._text[self._at : cut]):
            opened = self._next_state(opened, match)
        return opened

    def _bare_opening(self, cut: int) -> int | None:
        """Return the start of the line before ``cut`` if that line is a fence, else None."""
        begins = self._text.rfind("\n", self._at, cut) + 1 or self._at
        is_fence = _FENCE.fullmatch(self._text[begins:cut]) is not None
        return begins if is_fence else None

    def _next_state(self, opened: _Fence | None, match: "re.Match[str]") -> _Fence | None:
        marks = match[1] or match[3]
        if opened is not None:
            closes = marks.startswith(opened.marks) and not (match[2] or match[4] or "").strip()
            return None if closes else opened
        line = match[0].rstrip()
        if line not in self._fences:
            fence = _Fence(line=line, marks=marks)
            # Do not repeat fences that fill a third of a message: two of them would leave no room.
            too_large = 3 * self._size(fence.opening + fence.closing) > self._text_max
            self._fences[line] = None if too_large else fence
        return self._fences[line]

    def _after_space(self, cut: int) -> int:
        """Return where the text continues after a cut, at the indentation of a new line."""
        space = _SPACE.match(self._text, cut)
        assert space is not None
        line = self._text.rfind("\n", cut, space.end()) + 1
        # The last blank may carry a combining accent.
        return max(cut, safe_end(self._text, line or space.end()))


def _fitting(window: str, room: int, size: Callable[[str], int]) -> int:
    """Return how many characters of the window fit into ``room`` units, up to the end of a visible one; at least 1."""
    fitting = min(len(window), room)
    if size(window[:fitting]) > room:
        fitting = bisect_right(range(fitting), room, key=lambda length: size(window[:length])) - 1
    return safe_end(window, fitting) or max(1, fitting)
