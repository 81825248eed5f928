"""The piece of a text that a search result shows, with the matching words highlighted."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from keryx.core.search.rules.matching import TokenizedText, highlights
from keryx.core.search.rules.query import Phrase
from keryx.core.search.rules.tokens import compose, widen, word_spans, word_start
from keryx.core.values.graphemes import safe_end

SNIPPET_LENGTH: Final = 160
LEAD_WORDS: Final = 6
"""Words shown before the first highlight, if there are that many."""
WINDOW_WORDS: Final = 24
LEAD_CHARACTERS: Final = 24
_SPACES: Final = dict.fromkeys((*range(9, 14), *range(28, 33), 133, 8232, 8233), " ")
_ASCII_SPACES: Final = "".join(map(chr, range(128))).translate(_SPACES)
"""The same for ASCII text: a complete table is six times as fast."""

_Excerpt: TypeAlias = tuple[int, int, list[tuple[int, int]]]
"""(start, end, highlighted spans), all counted in the whole text."""


class Snippet(NamedTuple):
    """A piece of a text, and the (start, end) of each highlight in it."""

    text: str
    highlights: tuple[tuple[int, int], ...]


def make_snippet(phrases: Sequence[Phrase], given: TokenizedText) -> Snippet:
    """Return the piece of the text that shows most of ``phrases``."""
    text = compose(given.raw)
    runs = [phrase.run for phrase in phrases if phrase.run]
    if runs and len(runs) == len(phrases):
        start, end, shown = _around_runs(text, runs)
    else:
        start, end, shown = _around_words(text, highlights(phrases, given))
    lead = "…" if start else ""
    rest = "…" if end < len(text) else ""
    piece = text[start:end].translate(_ASCII_SPACES if text.isascii() else _SPACES)
    shift = len(lead) - start
    return Snippet(f"{lead}{piece}{rest}", _joined([(first + shift, last + shift) for first, last in shown]))


def densest_window(positions: Sequence[int], *, size: int) -> int:
    """Return the index of the position at which the window of ``size`` words with most positions starts.

    ``positions`` rise. Of several such windows, the first is taken.
    """
    if positions[-1] - positions[0] < size:
        return 0
    best, best_count = 0, 0
    for index, position in enumerate(positions):
        count = bisect_left(positions, position + size) - index
        if count > best_count:
            best, best_count = index, count
    return best


def _around_words(text: str, positions: Sequence[int]) -> _Excerpt:
    window = positions[densest_window(positions, size=WINDOW_WORDS)] if positions else 0
    first = max(0, window - LEAD_WORDS)
    start = word_start(text, first) if first else 0
    end = safe_end(text, start + SNIPPET_LENGTH)
    spans = word_spans(text[start:end], limit=positions[-1] - first + 1 if positions else 0)
    shown = [spans[each - first] for each in positions if first <= each < first + len(spans)]
    return start, end, [(begin + start, last + start) for begin, last in shown]


def _around_runs(text: str, runs: Sequence[str]) -> _Excerpt:
    """Return the excerpt around the first of some runs of characters, which are found literally."""
    searched = widen(text)
    found = [at for at in map(searched.find, runs) if at >= 0]
    start = max(0, min(found, default=0) - LEAD_CHARACTERS)
    end = safe_end(text, start + SNIPPET_LENGTH)
    shown: set[int] = set()
    for run in runs:
        at = searched.find(run, start, end)
        while at >= 0:
            shown.update(range(at, at + len(run)))
            at = searched.find(run, at + len(run), end)
    return start, end, [(at, at + 1) for at in sorted(shown)]


def _joined(spans: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the spans with adjacent ones joined, as the characters of a Chinese word are."""
    joined: list[tuple[int, int]] = []
    for first, last in spans:
        if joined and joined[-1][1] == first:
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return tuple(joined)
