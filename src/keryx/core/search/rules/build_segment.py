"""How documents become the entries of a segment.

Pure. Documents are numbered by (time, id), so that reading them backwards gives the newest first.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle, groupby
from sys import byteorder
from typing import Final, NamedTuple

from keryx.clock import Micros
from keryx.core.search.rules.blocks import PostingList, TermEntry
from keryx.core.search.rules.columns import DocumentColumns
from keryx.core.search.rules.index_format import COUNT_MAX, LENGTH_MAX, TERM_MAX
from keryx.core.search.rules.scope_terms import SESSION_SCOPE, join_marks, scope_entry, session_mark
from keryx.core.search.rules.tokens import tokenize

_LOW_BYTES: Final = slice(0, None, 4) if byteorder == "little" else slice(3, None, 4)


class IndexDocument(NamedTuple):
    """A message or a session card (whose id is below zero), as the index sees it."""

    id: int
    created_at: Micros
    text: str
    scopes: tuple[str, ...]
    """Scope terms: whose the document is, and what filters ask for."""


class BuiltSegment(NamedTuple):
    """A segment ready to be packed; ``entries`` are in the order of their terms."""

    columns: DocumentColumns
    entries: list[TermEntry]
    marks: bytes
    """The marks of the sessions whose documents the segment holds."""


def build_segment(documents: Iterable[IndexDocument], *, yield_control: Callable[[], None]) -> BuiltSegment:
    """Return the segment of some documents. Calls ``yield_control`` after each, so that other threads can run."""
    ordered = sorted(documents, key=lambda document: (document.created_at, document.id))
    # For each term: document * 256 + position modulo 256, rising. One number for each occurrence keeps the loop short.
    found: defaultdict[str, list[int]] = defaultdict(list)
    scopes: defaultdict[str, list[int]] = defaultdict(list)
    lengths: list[int] = []
    for number, document in enumerate(ordered):
        words, extras = tokenize(document.text)
        base = number << 8
        for word, place in zip(words, cycle(range(base, base + 256)), strict=False):
            found[word].append(place)
        for position, extra in extras:
            found[extra].append(base | (position & 255))
        for scope in document.scopes:
            scopes[scope].append(number)
        lengths.append(min(len(words), LENGTH_MAX))
        yield_control()
    entries = [scope_entry(term, scopes[term]) for term in sorted(scopes)]
    entries.extend(_word_entries(found))
    marks = join_marks(session_mark(term) for term in scopes if term.startswith(SESSION_SCOPE))
    columns = DocumentColumns([each.id for each in ordered], [each.created_at for each in ordered], lengths)
    return BuiltSegment(columns=columns, entries=entries, marks=marks)


def _word_entries(found: dict[str, list[int]]) -> Iterator[TermEntry]:
    for long in [term for term in found if len(term) > TERM_MAX]:
        # Long tokens with the same beginning share a term; the text tells them apart.
        found[long[:TERM_MAX]] = sorted({*found.get(long[:TERM_MAX], ()), *found.pop(long)})
    for term in sorted(found):
        places = found[term]
        if len(places) == 1:
            yield term, (places[0] >> 8,), b"\x01", bytes((places[0] & 255,))
        else:
            yield term, *_posting_list(places)


def _posting_list(places: list[int]) -> PostingList:
    docs = [place >> 8 for place in places]
    counts = dict.fromkeys(docs, 1)
    if len(counts) < len(docs):
        counts = Counter(docs)
        if max(counts.values()) > COUNT_MAX:
            places = _first_places(places)
            counts = {doc: min(count, COUNT_MAX) for doc, count in counts.items()}
    return list(counts), bytes(counts.values()), array("I", places).tobytes()[_LOW_BYTES]


def _first_places(places: list[int]) -> list[int]:
    """Return the first ``COUNT_MAX`` places in each document."""
    first: list[int] = []
    for _, of_document in groupby(places, key=lambda place: place >> 8):
        first.extend(list(of_document)[:COUNT_MAX])
    return first
