"""Which documents may hold a phrase, according to positions modulo 256.

The answer is a superset: words 256 positions apart look adjacent, and of a word that occurs 255 times or more not all
positions are known. The text decides.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate, compress, islice
from typing import Final

from keryx.core.search.rules.blocks import Postings
from keryx.core.search.rules.document_sets import index_range
from keryx.core.search.rules.index_format import COUNT_MAX

COUNTED: Final = 16
"""Up to this many documents in the range for each requested one, all counts are added up; above, single ones are."""
SIEVED: Final = 4
"""Up to this many documents in the range for each requested one, all are compared; above, a binary search is faster."""
_ROTATED_BYTES: Final = bytes(range(256)) * 2


class TokenPositions:
    """The positions of one token of a phrase in a segment."""

    __slots__ = ("_counts", "_docs", "_positions", "_shift", "_table", "block_id", "postings")

    def __init__(self, offset: int, postings: Postings, *, block_id: int) -> None:
        first = -offset & 255
        self._shift = _ROTATED_BYTES[first : first + 256]
        """A translation table that subtracts the token's offset in the phrase, modulo 256."""
        self.postings = postings
        self.block_id = block_id
        self._docs = postings.docs

    def load(self, positions: bytes) -> None:
        """Take the block's positions; must be called before ``phrase_starts``."""
        self._positions = positions
        self._table = self.postings.offset_table(positions)
        self._counts = self.postings.counts

    def phrase_starts(self, docs: Sequence[int]) -> list[bytes | None]:
        """Return where the phrase would start in each of ``docs``, modulo 256. None means anywhere.

        All of ``docs`` must hold the token; they rise or fall.
        """
        begin, end = index_range(self._docs, docs)
        counts = self._counts[begin:end]
        if end - begin > COUNTED * len(docs) or COUNT_MAX in counts:
            return self._sparse_starts(docs)
        first = self.postings.position_offset(begin, self._table)
        offsets = list(accumulate(counts, initial=0))
        starts = self._positions[first : first + offsets[-1]].translate(self._shift)
        among = self._docs
        if end - begin > SIEVED * len(docs):
            at = [bisect_left(among, doc, begin, end) - begin for doc in docs]
            return [starts[offsets[index] : offsets[index + 1]] for index in at]
        wanted = list(map(set(docs).__contains__, among[begin:end]))
        slices = map(slice, compress(offsets, wanted), compress(islice(offsets, 1, None), wanted))
        found: list[bytes | None] = list(map(starts.__getitem__, slices))
        return found if docs[0] <= docs[-1] else found[::-1]

    def _sparse_starts(self, docs: Sequence[int]) -> list[bytes | None]:
        """Do the same for few documents that are far apart."""
        among, counts, positions, shift = self._docs, self._counts, self._positions, self._shift
        offset, table = self.postings.position_offset, self._table
        found: list[bytes | None] = []
        for doc in docs:
            index = bisect_left(among, doc)
            count = counts[index]
            at = offset(index, table)
            found.append(None if count == COUNT_MAX else positions[at : at + count].translate(shift))
        return found


class PhraseFilter:
    """Keeps the documents of a segment in which a phrase may occur.

    Only documents that hold all tokens may be passed in. The positions are read on the first call.
    """

    __slots__ = ("_is_loaded", "_read", "_tokens")

    def __init__(
        self, tokens: Sequence[TokenPositions], *, read: Callable[[Sequence[int]], dict[int, bytes]]
    ) -> None:
        # The rarest token leaves the fewest places to look at.
        self._tokens = sorted(tokens, key=lambda each: len(each.postings.docs))
        self._read = read
        self._is_loaded = False

    def keep(self, docs: Sequence[int]) -> Sequence[int]:
        """Return the members of ``docs`` that may hold the phrase."""
        if not self._is_loaded:
            positions = self._read([each.block_id for each in self._tokens])
            for each in self._tokens:
                each.load(positions[each.block_id])
            self._is_loaded = True
        starts = self._tokens[0].phrase_starts(docs)
        for each in self._tokens[1:]:
            if not docs:
                break
            docs, starts = _common_starts(docs, starts, each.phrase_starts(docs))
        return docs


def _common_starts(
    docs: Sequence[int], left: Sequence[bytes | None], right: Sequence[bytes | None]
) -> tuple[list[int], list[bytes | None]]:
    """Return the documents in which two tokens have a phrase start in common, and the common starts."""
    kept: list[int] = []
    common: list[bytes | None] = []
    for doc, one, other in zip(docs, left, right, strict=True):
        both = one
        if one is None:
            both = other
        elif other is not None and len(one) > 1:
            apart = one.translate(None, other)
            if len(apart) == len(one):
                continue
            both = one.translate(None, apart)
        elif other is not None and one not in other:
            continue
        kept.append(doc)
        common.append(both)
    return kept, common
