"""How postings are packed: blocks of terms, and the columns that say which document is which message.

Pure. Everything is of fixed width and laid out in planes, so that reading is slicing at C speed and not a loop, and
planes of equal bytes compress. Documents are numbered by (time, id) within their segment, at most ``DOCS_MAX``.
"""

import re
import struct
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from sys import byteorder
from typing import Final, Literal, NamedTuple, TypeAlias

from keryx.domain.docsets import HASH_RATIO, stretch
from keryx.errors import StoreCorrupt

FORMAT: Final = 4
"""Written into the index; an index with another number is thrown away and built anew."""
DOCS_MAX: Final = 65_000
TERM_MAX: Final = 64
"""Characters of a token that the index keeps; the text decides about the rest."""
COUNT_MAX: Final = 255
"""A count that means "so many or more": the index does not know all positions then."""
SCOPE: Final = "\x01"
"""First character of terms that stand for scopes and filters; no token has it."""
_AFTER_SCOPES: Final = "\x02"
BLOCK_BYTES: Final = 2_048
CHUNK: Final = 512
"""Documents described by one chunk of columns."""
LENGTH_MAX: Final = 65_535
STEP: Final = 32
"""So many documents of a block one must be counted through at most to know where positions begin."""
NARROW: Final = 32_768
"""From documents in a stretch shorter than this, those around it are sifted out where that is quick."""

DAMAGED: Final = "The search index is damaged. It is built anew from the messages, of which nothing is lost."

_HEAD: Final = struct.Struct("<IH")
_PARTS: Final = struct.Struct("<II")
_LOW: Final = 0 if byteorder == "little" else 1
_CODES: Final[dict[int, tuple[Literal["I", "Q"], int]]] = {ord("I"): ("I", 4), ord("Q"): ("Q", 8)}
_LENGTH_SIZE: Final = array("H").itemsize
_TABLE_SIZE: Final = array("I").itemsize
_BASES: Final = struct.Struct("<qqBB")


Entry: TypeAlias = tuple[str, Sequence[int], bytes, bytes]
"""A term of a segment: (term, its documents rising, how often it stands in each, where, modulo 256).

A scope term has no positions and zeros for counts; see ``segment.scope_docs``. A plain tuple, because a merge makes
millions.
"""
Piece: TypeAlias = tuple[Sequence[int], bytes, bytes]
"""An entry without its term."""


class Packed(NamedTuple):
    """A block to be stored under its first term."""

    term: str
    data: bytes
    positions: bytes
    """Behind a table that says where those of every ``STEP``-th document begin."""


class Posting:
    """A term as found in a block."""

    __slots__ = ("_begin", "_block", "docs")

    def __init__(self, block: "Block", docs: "array[int]", begin: int) -> None:
        self._block = block
        self._begin = begin
        self.docs = docs

    @property
    def counts(self) -> bytes:
        """How often the term stands in each document; read only where somebody asks."""
        return self._block.counts(self._begin, self._begin + len(self.docs))

    def table(self, positions: bytes) -> "memoryview[int]":
        """Return the table in its block's positions, for ``place``."""
        return memoryview(positions)[: self._block.table_bytes].cast("I")

    def place(self, index: int, table: "memoryview[int]") -> int:
        """Return where in its block's positions those of its ``index``-th document begin."""
        number = self._begin + index
        step = number // STEP
        return table[step] + sum(self._block.counts(step * STEP, number))

    def counts_of(self, docs: Sequence[int]) -> list[int]:
        """How often the term stands in some documents, which rise or fall."""
        begin, end = stretch(self.docs, docs)
        among, counts = self.docs[begin:end], self.counts[begin:end]
        if end - begin <= HASH_RATIO * len(docs):
            known = dict(zip(among, counts, strict=True))
            return [known.get(doc, 0) for doc in docs]
        found: list[int] = []
        for doc in docs:
            index = bisect_left(among, doc)
            found.append(counts[index] if index < len(among) and among[index] == doc else 0)
        return found


def pack_blocks(entries: Iterable[Entry]) -> Iterator[Packed]:
    """Yield the blocks of a segment's entries, which come in the order of their terms."""
    waiting: list[Entry] = []
    left = BLOCK_BYTES
    for entry in entries:
        needed = len(entry[0]) + 3 + 3 * len(entry[1])
        if waiting and needed > left:
            yield pack_block(waiting)
            waiting, left = [], BLOCK_BYTES
        waiting.append(entry)
        left -= needed
    if waiting:
        yield pack_block(waiting)


def pack_block(entries: Sequence[Entry]) -> Packed:
    """Return one block of entries, which are in the order of their terms.

    Terms and high bytes are compressed together; low bytes would not get smaller; counts are read here and there, by
    those who rank and those who look for phrases.
    """
    terms, docs, counts, positions = zip(*entries, strict=True)
    names = "\n".join(["", *terms, ""]).encode()
    low, high = _planes(array("H", list(chain.from_iterable(docs))))
    sizes = array("H", list(map(len, docs)))
    front = zlib.compress(b"".join((_HEAD.pack(len(names), len(terms)), names, *_planes(sizes), high)), 1)
    every = b"".join(counts)
    data = b"".join((_PARTS.pack(len(front), len(low)), front, low, every))
    sums = [sum(every[begin : begin + STEP]) for begin in range(0, len(every), STEP)]
    table = array("I", list(accumulate(sums[:-1], initial=len(sums) * _TABLE_SIZE)))
    return Packed(terms[0], data, b"".join((table.tobytes(), *positions)))


class Block:
    """A block that was read; its terms are in order."""

    __slots__ = ("_counts_at", "_data", "_high", "_low", "_names", "_sizes_high", "_sizes_low")

    def __init__(self, data: bytes) -> None:
        try:
            front_bytes, docs_count = _PARTS.unpack_from(data)
            at = _PARTS.size + front_bytes
            self._low = data[at : at + docs_count]
            self._data = data
            self._counts_at = at + docs_count
            front = zlib.decompress(data[_PARTS.size : at])
            names_bytes, terms_count = _HEAD.unpack_from(front)
        except (zlib.error, struct.error) as damage:
            raise StoreCorrupt(DAMAGED) from damage
        if len(data) != self._counts_at + docs_count:
            raise StoreCorrupt(DAMAGED)
        at = _HEAD.size + names_bytes
        self._names = front[_HEAD.size : at]
        self._sizes_low = front[at : at + terms_count]
        self._sizes_high = front[at + terms_count : at + 2 * terms_count]
        self._high = front[at + 2 * terms_count :]

    @property
    def terms(self) -> list[str]:
        """Its terms in order."""
        return self._names[1:-1].decode().split("\n")

    @property
    def table_bytes(self) -> int:
        """How long the table is with which its positions begin."""
        return -(-len(self._low) // STEP) * _TABLE_SIZE

    def counts(self, begin: int, end: int) -> bytes:
        """How often terms stand in their documents: from one to another of all their documents in a row."""
        return self._data[self._counts_at + begin : self._counts_at + end]

    def find(self, term: str) -> Posting | None:
        """Return the posting of ``term``, or None where the block does not have it."""
        at = self._names.find(f"\n{term}\n".encode())
        if at < 0:
            return None
        # Counting line breaks is quicker than making a list of terms to look into.
        index = self._names.count(b"\n", 0, at)
        return self._posting(self._size(0, index), self._sizes_low[index] + 256 * self._sizes_high[index])

    def docs_from(self, prefix: str, *, within: tuple[int, int]) -> "array[int]":
        """Return the documents of all terms that begin with ``prefix``: term by term, so one may come again.

        Those that are not ``within`` the two, both counted in, may be left out.
        """
        key = f"\n{prefix}".encode()
        count = self._names.count(key)
        # Terms that begin alike stand side by side, and so do their documents.
        first = self._names.count(b"\n", 0, self._names.find(key)) if count else 0
        begin = self._size(0, first)
        end = begin + self._size(first, first + count)
        low, high = self._low[begin:end], self._high[begin:end]
        if count == 1:
            docs = _numbers(low, high)
            return docs[bisect_left(docs, within[0]) : bisect_right(docs, within[1])]
        if within[1] - within[0] < NARROW:
            low, high = _near(low, high, within)
        return _numbers(low, high)

    def _size(self, first: int, last: int) -> int:
        """How many documents the terms from ``first`` to ``last`` have together."""
        return sum(self._sizes_low[first:last]) + 256 * sum(self._sizes_high[first:last])

    def find_from(self, prefix: str) -> list[tuple[str, Posting]]:
        """Return all terms that begin with ``prefix``, with their postings."""
        terms = self.terms
        sizes = _numbers(self._sizes_low, self._sizes_high)
        first = bisect_left(terms, prefix)
        begin = sum(sizes[:first])
        found: list[tuple[str, Posting]] = []
        for term, size in zip(terms[first:], sizes[first:], strict=True):
            if not term.startswith(prefix):
                break
            found.append((term, self._posting(begin, size)))
            begin += size
        return found

    def pieces(
        self, positions: bytes, *, renumbering: "array[int] | None" = None
    ) -> Iterator[tuple[str, Piece]]:
        """Yield all terms and what belongs to them, given the block's positions; words under their new numbers."""
        docs: Sequence[int] = _numbers(self._low, self._high)
        begins = list(accumulate(_numbers(self._sizes_low, self._sizes_high), initial=0))
        counts = self.counts(0, len(docs))
        terms = self.terms
        scopes = bisect_left(terms, _AFTER_SCOPES)
        for term, begin, end in zip(terms[:scopes], begins, begins[1:], strict=False):
            yield term, (docs[begin:end], counts[begin:end], b"")
        if renumbering is not None:
            docs = [renumbering[doc] for doc in docs]
        places = list(accumulate(counts, initial=self.table_bytes))
        for term, begin, end in zip(terms[scopes:], begins[scopes:-1], begins[scopes + 1 :], strict=True):
            yield term, (docs[begin:end], counts[begin:end], positions[places[begin] : places[end]])

    def _posting(self, begin: int, size: int) -> Posting:
        end = begin + size
        return Posting(self, _numbers(self._low[begin:end], self._high[begin:end]), begin)


def _planes(numbers: "array[int]") -> tuple[bytes, bytes]:
    """Return the low bytes and the high bytes; of rising numbers the high ones are long runs."""
    packed = numbers.tobytes()
    return packed[_LOW::2], packed[1 - _LOW :: 2]


def _near(low: bytes, high: bytes, within: tuple[int, int]) -> tuple[bytes, bytes]:
    """Return the planes without most of the numbers that are not between the two: judged by their high bytes."""
    first, last = (re.escape(bytes((number >> 8,))) for number in within)
    runs = [match.span() for match in re.finditer(b"[%b-%b]+" % (first, last), high)]
    return b"".join([low[a:b] for a, b in runs]), b"".join([high[a:b] for a, b in runs])


def _numbers(low: bytes, high: bytes) -> "array[int]":
    packed = bytearray(2 * len(low))
    packed[_LOW::2] = low
    packed[1 - _LOW :: 2] = high
    numbers = array("H")
    numbers.frombytes(packed)
    return numbers


class Columns(NamedTuple):
    """Which message a document is (a session's card: minus the card's number), its time, its length in words."""

    ids: Sequence[int]
    times: Sequence[int]
    lengths: Sequence[int]


def pack_columns(columns: Columns) -> bytes:
    """Return one chunk of columns."""
    ids, id_code = _offsets(columns.ids)
    times, time_code = _offsets(columns.times)
    lengths = array("H", columns.lengths)
    head = _BASES.pack(min(columns.ids), min(columns.times), ord(id_code), ord(time_code))
    return head + ids + times + lengths.tobytes()


class Chunk:
    """One chunk of columns that was read; single documents are picked out of the bytes."""

    __slots__ = ("_id_base", "_ids", "_time_base", "_times", "lengths")

    lengths: memoryview
    """How many words each document has."""

    def __init__(self, data: bytes) -> None:
        try:
            self._id_base, self._time_base, id_code, time_code = _BASES.unpack_from(data)
            (id_format, id_size), (time_format, time_size) = _CODES[id_code], _CODES[time_code]
            count = (len(data) - _BASES.size) // (id_size + time_size + _LENGTH_SIZE)
            times_at = _BASES.size + count * id_size
            lengths_at = times_at + count * time_size
            view = memoryview(data)
            self._ids = view[_BASES.size : times_at].cast(id_format)
            self._times = view[times_at:lengths_at].cast(time_format)
            self.lengths = view[lengths_at:].cast("H")
        except (struct.error, KeyError, TypeError) as damage:
            raise StoreCorrupt(DAMAGED) from damage

    def key(self, index: int) -> tuple[int, int]:
        """Return (time, id) of one document, by which documents are ordered."""
        return self._time_base + self._times[index], self._id_base + self._ids[index]

    def columns(self) -> Columns:
        """Return all of it."""
        return Columns(
            [self._id_base + each for each in self._ids],
            [self._time_base + each for each in self._times],
            self.lengths.tolist(),
        )


def _offsets(numbers: Sequence[int]) -> tuple[bytes, str]:
    base = min(numbers)
    code = "I" if max(numbers) - base < 1 << 32 else "Q"
    return array(code, [each - base for each in numbers]).tobytes(), code
