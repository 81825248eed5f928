"""How documents become the entries of a segment, and how the entries of several segments become those of one.

Pure. Documents are numbered by (time, id), so that reading them backwards gives the newest first, and a merged segment
equals a segment built at once.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, cycle, groupby, pairwise
from sys import byteorder
from typing import Final, NamedTuple

from keryx.clock import Micros
from keryx.core.search.rules.blocks import PostingList, TermEntry
from keryx.core.search.rules.columns import DocumentColumns
from keryx.core.search.rules.index_format import COUNT_MAX, LENGTH_MAX, SCOPE, TERM_MAX
from keryx.core.search.rules.scope_terms import (
    SESSION_SCOPE,
    join_marks,
    scope_docs,
    scope_entry,
    session_mark,
)
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


TERMS_BEFORE_YIELD: Final = 50
REMOVED: Final = 65_535
"""Stands in place of a new number: the document is left out."""


def renumber(
    columns: Sequence[DocumentColumns], *, removed: Sequence[frozenset[int]]
) -> tuple[DocumentColumns, list["array[int]"]]:
    """Return the merged columns of segments, and for each segment the new number of each of its documents.

    Documents in ``removed`` (one set for each segment) are left out, and so are all versions of a session card but
    the newest.
    """
    ordered: list[tuple[int, int, int, int, int]] = []
    for source, (ids, times, lengths) in enumerate(columns):
        left_out = removed[source]
        ordered.extend(
            (at, id_, source, number, length)
            for number, (id_, at, length) in enumerate(zip(ids, times, lengths, strict=True))
            if number not in left_out
        )
    latest = {each[1]: each[2:4] for each in ordered if each[1] < 0}
    if latest:
        ordered = [each for each in ordered if each[1] >= 0 or latest[each[1]] == each[2:4]]
    ordered.sort()
    numbers = [array("H", [REMOVED]) * len(source.ids) for source in columns]
    for number, (_, _, source, old, _) in enumerate(ordered):
        numbers[source][old] = number
    merged = DocumentColumns(
        [each[1] for each in ordered], [each[0] for each in ordered], [each[4] for each in ordered]
    )
    return merged, numbers


def merge_entries(
    sources: Sequence[Iterable[tuple[str, PostingList]]],
    numbers: Sequence["array[int]"],
    *,
    yield_control: Callable[[], None],
) -> Iterator[TermEntry]:
    """Yield the merged entries of segments, which come oldest first.

    The lists of words already have the new document numbers. Those of scope terms have the old ones, because runs do
    not stay runs; ``numbers`` map old to new.
    """
    found: defaultdict[str, list[PostingList]] = defaultdict(list)
    for source, renumbering in zip(sources, numbers, strict=True):
        is_whole = REMOVED not in renumbering
        for term, postings in source:
            is_final = is_whole and term[0] != SCOPE
            found[term].append(postings if is_final else _adapt(term, postings, renumbering))
        yield_control()
    for index, term in enumerate(sorted(found)):
        lists = [postings for postings in found[term] if postings[0]]
        if not lists:
            continue
        if term[0] == SCOPE:
            yield scope_entry(term, sorted(chain.from_iterable(postings[0] for postings in lists)))
        else:
            yield term, *(lists[0] if len(lists) == 1 else _join(lists))
        if not index % TERMS_BEFORE_YIELD:
            yield_control()


def _adapt(term: str, postings: PostingList, renumbering: "array[int]") -> PostingList:
    """Return the list of a scope term with the new numbers, or that of a word without removed documents."""
    docs, _, _ = postings
    if term[0] == SCOPE:
        return [new for new in map(renumbering.__getitem__, scope_docs(docs)) if new != REMOVED], b"", b""
    if REMOVED not in docs:
        return postings
    return _pack([each for each in _unpack(postings) if each[0] != REMOVED])


def _join(lists: Sequence[PostingList]) -> PostingList:
    """Return the lists of one term as one: end to end if their documents do not interleave."""
    if any(one[0][-1] > other[0][0] for one, other in pairwise(lists)):
        return _pack(sorted(chain.from_iterable(map(_unpack, lists))))
    docs, counts, positions = zip(*lists, strict=True)
    return list(chain.from_iterable(docs)), b"".join(counts), b"".join(positions)


def _unpack(postings: PostingList) -> Iterator[tuple[int, int, bytes]]:
    docs, counts, positions = postings
    begin = 0
    for doc, count in zip(docs, counts, strict=True):
        yield doc, count, positions[begin : begin + count]
        begin += count


def _pack(occurrences: Sequence[tuple[int, int, bytes]]) -> PostingList:
    return (
        [each[0] for each in occurrences],
        bytes([each[1] for each in occurrences]),
        b"".join([each[2] for each in occurrences]),
    )
