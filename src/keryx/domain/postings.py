"""How postings are packed: blocks of terms, and the columns that say which document is which message.

Pure. Everything is of fixed width and laid out in planes, so that reading is slicing at C speed and not a loop, and
planes of equal bytes compress. Documents are numbered by (time, id) within their segment, at most ``DOCS_MAX``.
"""

import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from struct import Struct
from sys import byteorder
from typing import Final, NamedTuple, TypeAlias

FORMAT: Final = 1
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
CHUNK: Final = 256
"""Documents described by one chunk of columns."""
LENGTH_MAX: Final = 65_535

_HEAD: Final = Struct("<IH")
_BASES: Final = Struct("<qqBB")


Entry: TypeAlias = tuple[str, Sequence[int], bytes, bytes]
"""A term of a segment: (term, its documents rising, how often it stands in each, where, modulo 256).

A scope term has no positions. Its counts are all 0, or all 1 where the numbers are (first, last) of runs. A plain
tuple, because a merge makes millions.
"""
Piece: TypeAlias = tuple[Sequence[int], bytes, bytes]
"""An entry without its term."""


class Packed(NamedTuple):
    """A block to be stored under its first term."""

    term: str
    data: bytes
    positions: bytes


@dataclass(slots=True)
class Posting:
    """A term as found in a block, without its positions."""

    docs: "array[int]"
    counts: bytes
    begin: int
    """Where its documents begin among the block's."""


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
    """Return one block of entries, which are in the order of their terms."""
    terms, docs, counts, positions = zip(*entries, strict=True)
    names = "\n".join(terms).encode()
    raw = b"".join(
        (
            _HEAD.pack(len(names), len(terms)),
            names,
            _to_planes(array("H", list(map(len, docs)))),
            _to_planes(array("H", list(chain.from_iterable(docs)))),
            *counts,
        )
    )
    return Packed(terms[0], zlib.compress(raw, 3), b"".join(positions))


class Block:
    """A block that was read; its terms are in order."""

    __slots__ = ("_counts", "_docs", "_sizes", "terms")

    def __init__(self, data: bytes) -> None:
        raw = zlib.decompress(data)
        terms_bytes, terms_count = _HEAD.unpack_from(raw)
        at = _HEAD.size + terms_bytes
        self.terms = raw[_HEAD.size : at].decode().split("\n")
        self._sizes = _from_planes(raw[at : at + 2 * terms_count])
        at += 2 * terms_count
        docs_count = (len(raw) - at) // 3
        self._docs = raw[at : at + 2 * docs_count]
        self._counts = raw[at + 2 * docs_count :]

    def find(self, term: str) -> Posting | None:
        """Return the posting of ``term``, or None where the block does not have it."""
        index = bisect_left(self.terms, term)
        if index == len(self.terms) or self.terms[index] != term:
            return None
        return self._posting(sum(self._sizes[:index]), self._sizes[index])

    def find_from(self, prefix: str) -> list[Posting]:
        """Return the postings of all terms that begin with ``prefix``."""
        first = bisect_left(self.terms, prefix)
        begin = sum(self._sizes[:first])
        found: list[Posting] = []
        for index in range(first, len(self.terms)):
            if not self.terms[index].startswith(prefix):
                break
            found.append(self._posting(begin, self._sizes[index]))
            begin += self._sizes[index]
        return found

    def pieces(self, positions: bytes, *, renumbering: "array[int] | None" = None) -> Iterator[tuple[str, Piece]]:
        """Yield all terms and what belongs to them, given the block's positions; words under their new numbers."""
        docs: Sequence[int] = _from_planes(self._docs)
        begins = list(accumulate(self._sizes, initial=0))
        counts = self._counts
        scopes = bisect_left(self.terms, _AFTER_SCOPES)
        for term, begin, end in zip(self.terms[:scopes], begins, begins[1:], strict=False):
            yield term, (docs[begin:end], counts[begin:end], b"")
        if scopes == len(self.terms):
            return
        if renumbering is not None:
            docs = [renumbering[doc] for doc in docs]
        places = [0] * begins[scopes] + list(accumulate(counts[begins[scopes] :], initial=0))
        for term, begin, end in zip(self.terms[scopes:], begins[scopes:-1], begins[scopes + 1 :], strict=True):
            yield term, (docs[begin:end], counts[begin:end], positions[places[begin] : places[end]])

    def _posting(self, begin: int, size: int) -> Posting:
        half = len(self._docs) // 2
        planes = self._docs[begin : begin + size] + self._docs[half + begin : half + begin + size]
        return Posting(_from_planes(planes), self._counts[begin : begin + size], begin)

    def positions_begin(self, posting: Posting) -> int:
        """Return where the positions of ``posting`` begin in the block's: one for each occurrence before it."""
        scopes = bisect_left(self.terms, _AFTER_SCOPES)
        return sum(self._counts[sum(self._sizes[:scopes]) : posting.begin])


def _to_planes(numbers: "array[int]") -> bytes:
    packed = numbers.tobytes()
    # Low bytes first, then high bytes: of rising numbers the high ones are long runs.
    return packed[0::2] + packed[1::2] if byteorder == "little" else packed[1::2] + packed[0::2]


def _from_planes(planes: bytes) -> "array[int]":
    half = len(planes) // 2
    packed = bytearray(len(planes))
    low, high = (0, 1) if byteorder == "little" else (1, 0)
    packed[low::2] = planes[:half]
    packed[high::2] = planes[half:]
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


def unpack_columns(data: bytes) -> Columns:
    """Return the columns of one chunk."""
    id_base, time_base, id_code, time_code = _BASES.unpack_from(data)
    ids, times, lengths = array(chr(id_code)), array(chr(time_code)), array("H")
    count = (len(data) - _BASES.size) // (ids.itemsize + times.itemsize + lengths.itemsize)
    at = _BASES.size
    for column in (ids, times, lengths):
        column.frombytes(data[at : at + count * column.itemsize])
        at += count * column.itemsize
    return Columns([id_base + each for each in ids], [time_base + each for each in times], lengths)


def _offsets(numbers: Sequence[int]) -> tuple[bytes, str]:
    base = min(numbers)
    code = "I" if max(numbers) - base < 1 << 32 else "Q"
    return array(code, [each - base for each in numbers]).tobytes(), code
