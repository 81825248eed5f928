"""Which documents may hold a phrase, judged by positions modulo 256.

A superset: words 256 positions apart look adjacent, and of a word that stands 255 times or more not all positions are
known. The text decides.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Final

from keryx.domain.postings import COUNT_MAX, Posting

_RING: Final = bytes(range(256)) * 2


class Standing:
    """Where one token of a phrase stands in a segment."""

    __slots__ = ("_at", "_counts", "_docs", "_places", "_positions", "back", "block_id", "posting")

    def __init__(self, offset: int, posting: Posting, *, block_id: int) -> None:
        shift = -offset & 255
        self.back = _RING[shift : shift + 256]
        self.posting = posting
        self.block_id = block_id
        self._docs = posting.docs
        self._at = 0

    def read(self, positions: bytes) -> None:
        """Take the block's positions; must come before ``begins``."""
        self._positions = positions
        self._counts = self.posting.counts
        self._places = self.posting.places_begin

    def begins(self, doc: int) -> bytes | None:
        """Return where the phrase would begin in ``doc``, which must hold the token, modulo 256; None: anywhere."""
        counts = self._counts
        at = self._at
        index = self._at = bisect_left(self._docs, doc)
        # Counting on from the document asked last: documents are walked in order, one way or the other.
        if index >= at:
            places = self._places + sum(counts[at:index])
        else:
            places = self._places - sum(counts[index:at])
        self._places = places
        count = counts[index]
        return None if count == COUNT_MAX else self._positions[places : places + count].translate(self.back)


class Phrase:
    """The documents of a segment in which tokens may stand as a phrase has them, asked one by one.

    Only documents that hold all tokens may be asked for. Positions are read when the first one is.
    """

    __slots__ = ("_is_read", "_read", "_standing")

    def __init__(
        self, standing: Sequence[Standing], *, read: Callable[[Sequence[int]], dict[int, bytes]]
    ) -> None:
        self._standing = standing
        self._read = read
        self._is_read = False

    def __contains__(self, doc: int) -> bool:
        if not self._is_read:
            positions = self._read([each.block_id for each in self._standing])
            for each in self._standing:
                each.read(positions[each.block_id])
            self._is_read = True
        left: bytes | None = None
        for each in self._standing:
            begins = each.begins(doc)
            if begins is None:
                continue
            if left is None:
                left = begins
            # A token stands once or twice in most texts: looking for so few bytes beats making sets.
            elif len(left) == 1:
                if left[0] not in begins:
                    return False
            else:
                left = bytes([place for place in left if place in begins])
                if not left:
                    return False
        return True
