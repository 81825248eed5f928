"""Which documents may hold a phrase, judged by positions modulo 256.

A superset: words 256 positions apart look adjacent, and of a word that stands 255 times or more not all positions are
known. The text decides.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate, compress, islice
from typing import Final

from keryx.domain.docsets import stretch
from keryx.domain.postings import COUNT_MAX, Posting

COUNTED: Final = 16
"""Up to so many documents for each one that is asked for are counted through; more are summed up."""
SPARSE: Final = 4
"""Up to so many documents for each one that is asked for are passed through a sieve; more are looked up by halving."""
_RING: Final = bytes(range(256)) * 2


class Standing:
    """Where one token of a phrase stands in a segment."""

    __slots__ = ("_back", "_counts", "_docs", "_positions", "_table", "block_id", "posting")

    def __init__(self, offset: int, posting: Posting, *, block_id: int) -> None:
        shift = -offset & 255
        self._back = _RING[shift : shift + 256]
        self.posting = posting
        self.block_id = block_id
        self._docs = posting.docs

    def read(self, positions: bytes) -> None:
        """Take the block's positions; must come before ``begins``."""
        self._positions = positions
        self._table = self.posting.table(positions)
        self._counts = self.posting.counts

    def begins(self, docs: Sequence[int]) -> list[bytes | None]:
        """Return where the phrase would begin in each of ``docs``, modulo 256; None: anywhere.

        All of them must hold the token, and rise or fall.
        """
        begin, end = stretch(self._docs, docs)
        counts = self._counts[begin:end]
        if end - begin > COUNTED * len(docs) or COUNT_MAX in counts:
            return self._picked(docs)
        first = self.posting.place(begin, self._table)
        places = list(accumulate(counts, initial=0))
        shifted = self._positions[first : first + places[-1]].translate(self._back)
        among = self._docs
        if end - begin > SPARSE * len(docs):
            at = [bisect_left(among, doc, begin, end) - begin for doc in docs]
            return [shifted[places[index] : places[index + 1]] for index in at]
        wanted = list(map(set(docs).__contains__, among[begin:end]))
        cuts = map(slice, compress(places, wanted), compress(islice(places, 1, None), wanted))
        found: list[bytes | None] = list(map(shifted.__getitem__, cuts))
        return found if docs[0] <= docs[-1] else found[::-1]

    def _picked(self, docs: Sequence[int]) -> list[bytes | None]:
        """Do the same for few documents that are far apart."""
        among, counts, positions, back = self._docs, self._counts, self._positions, self._back
        place, table = self.posting.place, self._table
        found: list[bytes | None] = []
        for doc in docs:
            index = bisect_left(among, doc)
            count = counts[index]
            at = place(index, table)
            found.append(None if count == COUNT_MAX else positions[at : at + count].translate(back))
        return found


class Phrase:
    """The documents of a segment in which tokens may stand as a phrase has them.

    Only documents that hold all tokens may be asked for. Positions are read when the first ones are.
    """

    __slots__ = ("_is_read", "_read", "_standing")

    def __init__(
        self, standing: Sequence[Standing], *, read: Callable[[Sequence[int]], dict[int, bytes]]
    ) -> None:
        # The rarest token leaves the fewest places to look for.
        self._standing = sorted(standing, key=lambda each: len(each.posting.docs))
        self._read = read
        self._is_read = False

    def keep(self, docs: Sequence[int]) -> Sequence[int]:
        """Return those of ``docs`` that may hold the phrase."""
        if not self._is_read:
            positions = self._read([each.block_id for each in self._standing])
            for each in self._standing:
                each.read(positions[each.block_id])
            self._is_read = True
        left = self._standing[0].begins(docs)
        for each in self._standing[1:]:
            if not docs:
                break
            docs, left = _adjacent(docs, left, each.begins(docs))
        return docs


def _adjacent(
    docs: Sequence[int], left: Sequence[bytes | None], right: Sequence[bytes | None]
) -> tuple[list[int], list[bytes | None]]:
    """Return the documents in which two tokens have a beginning in common, and their common beginnings."""
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
