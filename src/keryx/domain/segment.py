"""How documents become the entries of a segment, and how the entries of several become those of one.

Pure. Documents are numbered by (time, id), in a segment made of others too, so that walking backwards is newest first.
"""

import zlib
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, cycle, groupby, pairwise
from sys import byteorder
from typing import Final

from keryx.clock import Micros
from keryx.domain.docsets import Runs, to_runs
from keryx.domain.postings import COUNT_MAX, LENGTH_MAX, SCOPE, TERM_MAX, Columns, Entry, Piece
from keryx.domain.tokens import tokenize
from keryx.values import dataclass

TERMS_A_BREATH: Final = 50
GONE: Final = 65_535
MARK_BYTES: Final = 4
SESSION_SCOPE: Final = f"{SCOPE}s"
"""How the terms begin that stand for sessions."""
"""In place of a new number: the document is left out."""
_LOW_BYTES: Final = slice(0, None, 4) if byteorder == "little" else slice(3, None, 4)


@dataclass(frozen=True, slots=True)
class Author:
    """Who said it, as far as is known."""

    name: str | None = None
    person_id: int | None = None

    def words(self) -> set[str]:
        """The words one of which ``from:`` gives."""
        words = set(tokenize(self.name).words) if self.name else set()
        return words if self.person_id is None else words | {str(self.person_id)}


NOBODY: Final = Author()


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A message, or a session's card (whose id is below zero), as the index sees it."""

    id: int
    created_at: Micros
    text: str
    scopes: tuple[str, ...]
    """Scope terms: whose it is, and what filters ask for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A segment ready to be packed; ``entries`` are in the order of their terms."""

    columns: Columns
    entries: list[Entry]
    marks: bytes
    """Of the sessions it holds documents of."""


def scope_term(kind: str, value: object) -> str:
    """Return the term that stands for documents of one scope: ``kind`` is one letter, see ``document_scopes``."""
    return f"{SCOPE}{kind}{value}"[:TERM_MAX]


def session_mark(term: str) -> bytes:
    """Return the few bytes by which a segment says that it may hold the session of a term; others may share them."""
    return zlib.crc32(term.encode()).to_bytes(MARK_BYTES, "big")


def join_marks(several: Iterable[bytes]) -> bytes:
    """Return the marks of several segments as those of one."""
    every = {marks[at : at + MARK_BYTES] for marks in several for at in range(0, len(marks), MARK_BYTES)}
    return b"".join(sorted(every))


def document_scopes(
    *,
    session_id: str,
    audience_id: int,
    platform: str,
    role: str | None = None,
    author: Author = NOBODY,
    features: Iterable[str] = (),
) -> tuple[str, ...]:
    """Return the scope terms of a document; a card has no role, author and features."""
    scopes = [
        scope_term("s", session_id),
        scope_term("a", audience_id),
        scope_term("p", platform_token(platform)),
    ]
    if role is not None:
        scopes.append(scope_term("r", role))
    scopes.extend(scope_term("f", word) for word in author.words())
    scopes.extend(scope_term("h", feature) for feature in features)
    return tuple(scopes)


def platform_token(platform: str) -> str:
    """Return a platform's name in the form filters are compared in."""
    return " ".join(tokenize(platform).words)


def build_segment(documents: Iterable[Document], *, breathe: Callable[[], None]) -> Built:
    """Return the segment of some documents; calls ``breathe`` after each, so that other threads get their turn."""
    ordered = sorted(documents, key=lambda document: (document.created_at, document.id))
    # Of each term: document * 256 + position modulo 256, in order. One number per occurrence keeps the loop short.
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
        breathe()
    entries = [scope_entry(term, scopes[term]) for term in sorted(scopes)]
    entries.extend(_entries(found))
    marks = join_marks(session_mark(term) for term in scopes if term.startswith(SESSION_SCOPE))
    columns = Columns([each.id for each in ordered], [each.created_at for each in ordered], lengths)
    return Built(columns=columns, entries=entries, marks=marks)


def _entries(found: dict[str, list[int]]) -> Iterator[Entry]:
    for long in [term for term in found if len(term) > TERM_MAX]:
        # Several long terms may begin alike; which one it is the text decides.
        found[long[:TERM_MAX]] = sorted({*found.get(long[:TERM_MAX], ()), *found.pop(long)})
    for term in sorted(found):
        places = found[term]
        if len(places) == 1:
            yield term, (places[0] >> 8,), b"\x01", bytes((places[0] & 255,))
        else:
            yield term, *_piece(places)


def _piece(places: list[int]) -> Piece:
    docs = [place >> 8 for place in places]
    counts = dict.fromkeys(docs, 1)
    if len(counts) < len(docs):
        counts = Counter(docs)
        if max(counts.values()) > COUNT_MAX:
            places = _first_places(places)
            counts = {doc: min(count, COUNT_MAX) for doc, count in counts.items()}
    return list(counts), bytes(counts.values()), array("I", places).tobytes()[_LOW_BYTES]


def _first_places(places: list[int]) -> list[int]:
    kept: list[int] = []
    for _, of_doc in groupby(places, key=lambda place: place >> 8):
        kept.extend(list(of_doc)[:COUNT_MAX])
    return kept


def scope_entry(term: str, docs: Sequence[int]) -> Entry:
    """Return the entry of a scope term: document by document, or where that is shorter the (last, first) of runs."""
    runs = to_runs(docs)
    if 2 * len(runs.firsts) < len(docs):
        docs = [number for pair in zip(runs.lasts, runs.firsts, strict=True) for number in pair]
    return term, docs, bytes(len(docs)), b""


def scope_docs(docs: Sequence[int]) -> Sequence[int] | Runs:
    """Return the documents of a scope term; its numbers begin with a larger one only where they are runs."""
    return Runs(docs[1::2], docs[0::2]) if len(docs) > 1 and docs[0] >= docs[1] else docs


def renumber(
    columns: Sequence[Columns], *, gone: Sequence[frozenset[int]]
) -> tuple[Columns, list["array[int]"]]:
    """Return the columns of the segments together, and for each segment the new number of each document.

    Documents in ``gone`` (one set for each segment) are left out; so is all but the newest of a card's.
    """
    ordered: list[tuple[int, int, int, int, int]] = []
    for source, (ids, times, lengths) in enumerate(columns):
        left_out = gone[source]
        ordered.extend(
            (at, id_, source, number, length)
            for number, (id_, at, length) in enumerate(zip(ids, times, lengths, strict=True))
            if number not in left_out
        )
    latest = {each[1]: each[2:4] for each in ordered if each[1] < 0}
    if latest:
        ordered = [each for each in ordered if each[1] >= 0 or latest[each[1]] == each[2:4]]
    ordered.sort()
    numbers = [array("H", [GONE]) * len(source.ids) for source in columns]
    for number, (_, _, source, old, _) in enumerate(ordered):
        numbers[source][old] = number
    together = Columns(
        [each[1] for each in ordered], [each[0] for each in ordered], [each[4] for each in ordered]
    )
    return together, numbers


def merge_entries(
    sources: Sequence[Iterable[tuple[str, Piece]]],
    numbers: Sequence["array[int]"],
    *,
    breathe: Callable[[], None],
) -> Iterator[Entry]:
    """Yield the terms of the segments together; sources come oldest first, their words under the new numbers.

    Scope terms come under the old numbers, because runs do not stay runs; ``numbers`` are the new ones.
    """
    found: defaultdict[str, list[Piece]] = defaultdict(list)
    for source, renumbering in zip(sources, numbers, strict=True):
        is_whole = GONE not in renumbering
        for term, piece in source:
            found[term].append(piece if is_whole and term[0] != SCOPE else _adapted(term, piece, renumbering))
        breathe()
    for index, term in enumerate(sorted(found)):
        pieces = [piece for piece in found[term] if piece[0]]
        if not pieces:
            continue
        if term[0] == SCOPE:
            yield scope_entry(term, sorted(chain.from_iterable(piece[0] for piece in pieces)))
        else:
            yield term, *(pieces[0] if len(pieces) == 1 else _join(pieces))
        if not index % TERMS_A_BREATH:
            breathe()


def _adapted(term: str, piece: Piece, renumbering: "array[int]") -> Piece:
    """Return a scope's piece under the new numbers, or a word's without the documents that are gone."""
    docs, _, _ = piece
    if term[0] == SCOPE:
        return [new for new in map(renumbering.__getitem__, scope_docs(docs)) if new != GONE], b"", b""
    return piece if GONE not in docs else _glue([each for each in _split(piece) if each[0] != GONE])


def _join(pieces: Sequence[Piece]) -> Piece:
    """Return what belongs to one term as one; where the documents do not interleave, by laying them end to end."""
    if any(one[0][-1] > other[0][0] for one, other in pairwise(pieces)):
        return _glue(sorted(chain.from_iterable(map(_split, pieces))))
    docs, counts, positions = zip(*pieces, strict=True)
    return list(chain.from_iterable(docs)), b"".join(counts), b"".join(positions)


def _split(piece: Piece) -> Iterator[tuple[int, int, bytes]]:
    docs, counts, positions = piece
    begin = 0
    for doc, count in zip(docs, counts, strict=True):
        yield doc, count, positions[begin : begin + count]
        begin += count


def _glue(pieces: Sequence[tuple[int, int, bytes]]) -> Piece:
    return (
        [each[0] for each in pieces],
        bytes([each[1] for each in pieces]),
        b"".join([each[2] for each in pieces]),
    )
