"""Sets of document numbers within a segment: rising sequences, and runs where they are long and dense.

A set is never changed once made. ``Runs`` stands for what is too large to be written out for one question.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Final, Protocol, TypeAlias


class Asked(Protocol):
    """What can be asked whether it holds a document."""

    def __contains__(self, doc: int, /) -> bool:
        """Whether ``doc`` is in it."""


class Runs:
    """The documents from each ``firsts[i]`` to ``lasts[i]``, both rising and apart."""

    __slots__ = ("_count", "firsts", "lasts")

    def __init__(self, firsts: Sequence[int], lasts: Sequence[int]) -> None:
        self.firsts = firsts
        self.lasts = lasts
        self._count = sum(lasts) - sum(firsts) + len(firsts)

    def __len__(self) -> int:
        return self._count

    def __contains__(self, doc: int) -> bool:
        index = bisect_right(self.firsts, doc) - 1
        return index >= 0 and doc <= self.lasts[index]

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(range(a, b + 1) for a, b in zip(self.firsts, self.lasts, strict=True))

    def __reversed__(self) -> Iterator[int]:
        pairs = zip(reversed(self.firsts), reversed(self.lasts), strict=True)
        return chain.from_iterable(range(b, a - 1, -1) for a, b in pairs)


class AnyOf:
    """The documents of several sets, too many to be written out before somebody asks for them."""

    __slots__ = ("_count", "_sets", "_tested")

    def __init__(self, sets: "Sequence[DocSet]") -> None:
        self._sets = sets
        self._tested = [_tested(each) for each in sets]
        self._count = sum(map(len, sets))

    def __len__(self) -> int:
        """How many there are at most."""
        return self._count

    def __contains__(self, doc: int) -> bool:
        for each in self._tested:  # noqa: SIM110 - any() costs a generator, and this is asked for every candidate
            if doc in each:
                return True
        return False

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(set().union(*self._sets)))

    def __reversed__(self) -> Iterator[int]:
        return iter(sorted(set().union(*self._sets), reverse=True))


class Kept:
    """The documents of one set that are in another, tested only as far as somebody walks."""

    __slots__ = ("_among", "_docs")

    def __init__(self, docs: "DocSet", among: Asked) -> None:
        self._docs = docs
        self._among = _tested(among)

    def __len__(self) -> int:
        """How many there are at most."""
        return len(self._docs)

    def __contains__(self, doc: int) -> bool:
        return doc in self._among and doc in _tested(self._docs)

    def __iter__(self) -> Iterator[int]:
        return self._walk(iter(self._docs))

    def __reversed__(self) -> Iterator[int]:
        return self._walk(reversed(self._docs))

    def _walk(self, docs: Iterator[int]) -> Iterator[int]:
        among = self._among
        if isinstance(among, (Halved, Without)):
            # Whoever wants a page stops soon; only a long walk is worth the making of a hash set.
            yield from among.walk(islice(docs, among.patience))
            following = next(docs, None)
            if following is None:
                return
            among = among.hashed()
            if following in among:
                yield following
        yield from (doc for doc in docs if doc in among)


class Halved:
    """A rising sequence in which a document is looked for by halving."""

    __slots__ = ("_docs",)

    def __init__(self, docs: Sequence[int]) -> None:
        self._docs = docs

    @property
    def patience(self) -> int:
        """After how many questions it is better hashed."""
        return len(self._docs) // HASH_RATIO + 1

    def hashed(self) -> Asked:
        """Return the same set for many questions."""
        return frozenset(self._docs)

    def walk(self, docs: Iterator[int]) -> Iterator[int]:
        """Yield those of ``docs`` that are in it."""
        among = self._docs
        count = len(among)
        for doc in docs:
            index = bisect_left(among, doc)
            if index < count and among[index] == doc:
                yield doc

    def __contains__(self, doc: int) -> bool:
        index = bisect_left(self._docs, doc)
        return index < len(self._docs) and self._docs[index] == doc


class Without:
    """The documents that are not in a set: only ever asked, never walked."""

    __slots__ = ("_docs",)

    def __init__(self, docs: Asked) -> None:
        self._docs = _tested(docs)

    @property
    def patience(self) -> int:
        """After how many questions it is better hashed."""
        return self._docs.patience if isinstance(self._docs, Halved) else 0

    def hashed(self) -> Asked:
        """Return the same set for many questions."""
        return Without(self._docs.hashed()) if isinstance(self._docs, Halved) else self

    def walk(self, docs: Iterator[int]) -> Iterator[int]:
        """Yield those of ``docs`` that are in it."""
        return (doc for doc in docs if doc not in self._docs)

    def __contains__(self, doc: int) -> bool:
        return doc not in self._docs


HASH_RATIO: Final = 16
"""Looking for one document by halving costs about as much as hashing so many."""

DocSet: TypeAlias = Sequence[int] | Runs | AnyOf | Kept
EMPTY: Final[DocSet] = ()


def _tested(docs: Asked) -> Asked:
    """Return the set in a form that answers quickly whether a document is in it."""
    return Halved(docs) if isinstance(docs, (list, tuple, array)) else docs


def everything(count: int) -> DocSet:
    """Return all documents of a segment of ``count``."""
    return range(count)


def to_runs(docs: Iterable[int]) -> Runs:
    """Return the rising ``docs`` as runs."""
    firsts, lasts = array("H"), array("H")
    previous = -2
    for doc in docs:
        if doc == previous + 1:
            lasts[-1] = doc
        else:
            firsts.append(doc)
            lasts.append(doc)
        previous = doc
    return Runs(firsts, lasts)


def intersect(one: DocSet, other: DocSet) -> DocSet:
    """Return the documents that are in both, rising."""
    if isinstance(one, range) and isinstance(other, range):
        return range(max(one.start, other.start), min(one.stop, other.stop))
    for docs, whole in ((one, other), (other, one)):
        if isinstance(whole, range) and isinstance(docs, (list, tuple, array)):
            begin, end = bisect_left(docs, whole.start), bisect_left(docs, whole.stop)
            return docs if end - begin == len(docs) else docs[begin:end]
    return Kept(one, other) if len(one) <= len(other) else Kept(other, one)


def unite(sets: Sequence[DocSet]) -> DocSet:
    """Return the documents that are in any, rising."""
    filled = [each for each in sets if len(each)]
    if len(filled) <= 1:
        return filled[0] if filled else EMPTY
    for each in filled:
        if isinstance(each, range):
            return each
    return sorted(set().union(*filled))


def subtract(one: DocSet, other: DocSet) -> DocSet:
    """Return the documents of ``one`` that are not in ``other``, rising."""
    return Kept(one, Without(other)) if len(other) else one
