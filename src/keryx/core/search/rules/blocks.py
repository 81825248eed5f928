"""How postings are packed: blocks of consecutive terms, each with the documents and positions that hold it.

Pure. All fields have fixed widths and stand in planes, so that reading is slicing at C speed instead of a Python loop,
and planes of equal bytes compress. Documents are numbered by (time, id) within their segment.
"""

import re
import struct
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from sys import byteorder
from typing import Final, NamedTuple, TypeAlias

from keryx.core.search.rules.document_sets import HASH_RATIO, index_range
from keryx.core.search.rules.index_format import DAMAGED
from keryx.errors import StoreCorrupt

_LOW: Final = 0 if byteorder == "little" else 1


def split_planes(numbers: "array[int]") -> tuple[bytes, bytes]:
    """Return the low bytes and the high bytes. The high bytes of rising numbers are long runs and compress well."""
    packed = numbers.tobytes()
    return packed[_LOW::2], packed[1 - _LOW :: 2]


def join_planes(low: bytes, high: bytes) -> "array[int]":
    """Return the numbers of two planes."""
    packed = bytearray(2 * len(low))
    packed[_LOW::2] = low
    packed[1 - _LOW :: 2] = high
    numbers = array("H")
    numbers.frombytes(packed)
    return numbers


def narrow_planes(low: bytes, high: bytes, within: tuple[int, int]) -> tuple[bytes, bytes]:
    """Return the planes without most of the numbers outside a range, by a comparison of the high bytes alone."""
    first, last = (re.escape(bytes((number >> 8,))) for number in within)
    runs = [match.span() for match in re.finditer(b"[%b-%b]+" % (first, last), high)]
    return b"".join([low[a:b] for a, b in runs]), b"".join([high[a:b] for a, b in runs])


BLOCK_BYTES: Final = 2_048
TABLE_STEP: Final = 32
"""The offset table has an entry for every document whose number in the block is a multiple of this."""
NARROW: Final = 32_768
"""Below this range of documents, a prefix lookup drops documents outside the range where that is fast."""

_AFTER_SCOPES: Final = "\x02"
_HEAD: Final = struct.Struct("<IH")
_PARTS: Final = struct.Struct("<II")
_TABLE_SIZE: Final = array("I").itemsize

PostingList: TypeAlias = tuple[Sequence[int], bytes, bytes]
"""(documents rising, how often the term occurs in each, its positions in each modulo 256).

The list of a scope term has no positions and zeros for counts; see ``scope_terms.scope_docs``. A plain tuple, because
a merge makes millions of them.
"""
TermEntry: TypeAlias = tuple[str, Sequence[int], bytes, bytes]
"""A term of a segment, followed by its posting list."""


class PackedBlock(NamedTuple):
    """A block to be stored under its first term."""

    term: str
    data: bytes
    positions: bytes
    """The offset table, then the positions."""


class Postings:
    """The postings of one term, read from a block."""

    __slots__ = ("_begin", "_block", "docs")

    def __init__(self, block: "Block", docs: "array[int]", begin: int) -> None:
        self._block = block
        self._begin = begin
        self.docs = docs

    @property
    def counts(self) -> bytes:
        """How often the term occurs in each document; read only on demand."""
        return self._block.counts(self._begin, self._begin + len(self.docs))

    def offset_table(self, positions: bytes) -> "memoryview[int]":
        """Return the offset table of the block's positions, for ``position_offset``."""
        return memoryview(positions)[: self._block.table_bytes].cast("I")

    def position_offset(self, index: int, table: "memoryview[int]") -> int:
        """Return where the positions of the term's ``index``-th document begin in the block's positions."""
        number = self._begin + index
        step = number // TABLE_STEP
        return table[step] + sum(self._block.counts(step * TABLE_STEP, number))

    def counts_in(self, docs: Sequence[int]) -> list[int]:
        """Return how often the term occurs in each of ``docs``, which rise or fall."""
        begin, end = index_range(self.docs, docs)
        among, counts = self.docs[begin:end], self.counts[begin:end]
        if end - begin <= HASH_RATIO * len(docs):
            known = dict(zip(among, counts, strict=True))
            return [known.get(doc, 0) for doc in docs]
        found: list[int] = []
        for doc in docs:
            index = bisect_left(among, doc)
            found.append(counts[index] if index < len(among) and among[index] == doc else 0)
        return found


def pack_blocks(entries: Iterable[TermEntry]) -> Iterator[PackedBlock]:
    """Yield the blocks of a segment's entries, which come in the order of their terms."""
    waiting: list[TermEntry] = []
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


def pack_block(entries: Sequence[TermEntry]) -> PackedBlock:
    """Return one block of entries, which are in the order of their terms.

    Terms and high bytes are compressed together. Low bytes do not compress. Counts stay uncompressed because ranking
    and phrases read single ones.
    """
    terms, docs, counts, positions = zip(*entries, strict=True)
    names = "\n".join(["", *terms, ""]).encode()
    low, high = split_planes(array("H", list(chain.from_iterable(docs))))
    sizes = array("H", list(map(len, docs)))
    front = zlib.compress(
        b"".join((_HEAD.pack(len(names), len(terms)), names, *split_planes(sizes), high)), 1
    )
    all_counts = b"".join(counts)
    data = b"".join((_PARTS.pack(len(front), len(low)), front, low, all_counts))
    sums = [sum(all_counts[begin : begin + TABLE_STEP]) for begin in range(0, len(all_counts), TABLE_STEP)]
    table = array("I", list(accumulate(sums[:-1], initial=len(sums) * _TABLE_SIZE)))
    return PackedBlock(terms[0], data, b"".join((table.tobytes(), *positions)))


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
        """The terms in order."""
        return self._names[1:-1].decode().split("\n")

    @property
    def table_bytes(self) -> int:
        """The length of the offset table before the positions."""
        return -(-len(self._low) // TABLE_STEP) * _TABLE_SIZE

    def counts(self, begin: int, end: int) -> bytes:
        """Return a slice of the counts; the documents of all terms are numbered one after another."""
        return self._data[self._counts_at + begin : self._counts_at + end]

    def find(self, term: str) -> Postings | None:
        """Return the postings of ``term``, or None if the block does not hold the term."""
        at = self._names.find(f"\n{term}\n".encode())
        if at < 0:
            return None
        # Counting line breaks is faster than splitting the terms into a list and searching that.
        index = self._names.count(b"\n", 0, at)
        return self._postings(self._size(0, index), self._sizes_low[index] + 256 * self._sizes_high[index])

    def prefix_docs(self, prefix: str, *, within: tuple[int, int]) -> "array[int]":
        """Return the documents of all terms that begin with ``prefix``, term by term, so documents may repeat.

        Documents outside ``within``, whose bounds are inclusive, may be left out.
        """
        key = f"\n{prefix}".encode()
        count = self._names.count(key)
        # Terms with a common prefix are adjacent, and so are their documents.
        first = self._names.count(b"\n", 0, self._names.find(key)) if count else 0
        begin = self._size(0, first)
        end = begin + self._size(first, first + count)
        low, high = self._low[begin:end], self._high[begin:end]
        if count == 1:
            docs = join_planes(low, high)
            return docs[bisect_left(docs, within[0]) : bisect_right(docs, within[1])]
        if within[1] - within[0] < NARROW:
            low, high = narrow_planes(low, high, within)
        return join_planes(low, high)

    def find_prefix(self, prefix: str) -> list[tuple[str, Postings]]:
        """Return all terms that begin with ``prefix``, with their postings."""
        terms = self.terms
        sizes = join_planes(self._sizes_low, self._sizes_high)
        first = bisect_left(terms, prefix)
        begin = sum(sizes[:first])
        found: list[tuple[str, Postings]] = []
        for term, size in zip(terms[first:], sizes[first:], strict=True):
            if not term.startswith(prefix):
                break
            found.append((term, self._postings(begin, size)))
            begin += size
        return found

    def posting_lists(
        self, positions: bytes, *, renumbering: "array[int] | None" = None
    ) -> Iterator[tuple[str, PostingList]]:
        """Yield all terms with their posting lists, given the block's positions.

        ``renumbering`` maps old document numbers to new ones; it is applied to words, not to scope terms.
        """
        docs: Sequence[int] = join_planes(self._low, self._high)
        begins = list(accumulate(join_planes(self._sizes_low, self._sizes_high), initial=0))
        counts = self.counts(0, len(docs))
        terms = self.terms
        scopes = bisect_left(terms, _AFTER_SCOPES)
        for term, begin, end in zip(terms[:scopes], begins, begins[1:], strict=False):
            yield term, (docs[begin:end], counts[begin:end], b"")
        if renumbering is not None:
            docs = [renumbering[doc] for doc in docs]
        offsets = list(accumulate(counts, initial=self.table_bytes))
        for term, begin, end in zip(terms[scopes:], begins[scopes:-1], begins[scopes + 1 :], strict=True):
            yield term, (docs[begin:end], counts[begin:end], positions[offsets[begin] : offsets[end]])

    def _size(self, first: int, last: int) -> int:
        """Return how many documents the terms from ``first`` up to, but without, ``last`` have together."""
        return sum(self._sizes_low[first:last]) + 256 * sum(self._sizes_high[first:last])

    def _postings(self, begin: int, size: int) -> Postings:
        end = begin + size
        return Postings(self, join_planes(self._low[begin:end], self._high[begin:end]), begin)
