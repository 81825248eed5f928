"""Sets of document numbers within a segment: rising sequences, and lazier forms where they are long.

A set is never changed once made. Whatever is walked is walked in pieces, a few documents first and then more at once:
whoever wants one page pays for little, and whoever wants everything pays little for each document.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Final, Protocol, TypeAlias

PIECE: Final = 32
"""Documents of the first piece of a walk; each one after that is four times as large."""
PIECE_MAX: Final = 8_192
DOC_MAX: Final = 65_535
HASH_RATIO: Final = 6
"""Looking for one document by halving costs about as much as hashing so many."""


class Test(Protocol):
    """What says of documents whether they are in a set."""

    def keep(self, docs: Sequence[int], /) -> Sequence[int]:
        """Return those of ``docs``, which rise or fall, that are in the set, in the order they came."""


class Runs:
    """The documents from each ``firsts[i]`` to ``lasts[i]``, both rising and apart."""

    __slots__ = ("_count", "firsts", "lasts")

    def __init__(self, firsts: Sequence[int], lasts: Sequence[int]) -> None:
        self.firsts = firsts
        self.lasts = lasts
        self._count = sum(lasts) - sum(firsts) + len(firsts)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(range(a, b + 1) for a, b in zip(self.firsts, self.lasts, strict=True))

    def __reversed__(self) -> Iterator[int]:
        pairs = zip(reversed(self.firsts), reversed(self.lasts), strict=True)
        return chain.from_iterable(range(b, a - 1, -1) for a, b in pairs)

    def keep(self, docs: Sequence[int]) -> Sequence[int]:
        """Return those of ``docs`` that are in a run."""
        firsts, lasts = self.firsts, self.lasts
        return [doc for doc in docs if (after := bisect_right(firsts, doc)) and doc <= lasts[after - 1]]

    def cut(self, docs: "array[int]") -> "array[int]":
        """Return those of the rising ``docs`` that are in a run: a slice for each run, however many they are."""
        found = array("H")
        end = 0
        for first, last in zip(self.firsts, self.lasts, strict=True):
            begin = bisect_left(docs, first, end)
            end = bisect_right(docs, last, begin)
            found += docs[begin:end]
        return found


class AnyOf:
    """The documents of several sets, too many to be written out before somebody asks for them."""

    __slots__ = ("_count", "_sets", "_tests")

    def __init__(self, sets: Sequence[Sequence[int] | Runs]) -> None:
        self._sets = sets
        self._tests = [_test_of(each) for each in sets]
        self._count = sum(map(len, sets))

    def __len__(self) -> int:
        """How many there are at most."""
        return self._count

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(set().union(*self._sets)))

    def __reversed__(self) -> Iterator[int]:
        return iter(sorted(set().union(*self._sets), reverse=True))

    def keep(self, docs: Sequence[int]) -> Sequence[int]:
        """Return those of ``docs`` that are in any of the sets."""
        found: set[int] = set()
        for each in self._tests:
            found.update(each.keep(docs))
        return docs if len(found) == len(docs) else [doc for doc in docs if doc in found]


class Heap:
    """Documents in no order and more than once, as the terms that begin alike have them.

    Where ``among`` is given, whoever asks or walks wants nothing else but what is in that as well.
    """

    __slots__ = ("_among", "_count", "_docs", "_hashed")

    def __init__(self, docs: Sequence[Sequence[int]], *, among: Iterable[int] | None = None) -> None:
        self._docs = docs
        self._among = among
        self._count = sum(map(len, docs))
        self._hashed: set[int] | None = None

    def __len__(self) -> int:
        """How many there are at most."""
        return self._count

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._hash()))

    def __reversed__(self) -> Iterator[int]:
        return iter(sorted(self._hash(), reverse=True))

    def keep(self, docs: Sequence[int]) -> Sequence[int]:
        """Return those of ``docs`` that are in it."""
        found = self._hash()
        return [doc for doc in docs if doc in found]

    def _hash(self) -> set[int]:
        if self._hashed is None:
            docs: Iterable[Iterable[int]] = self._docs
            if self._among is not None:
                # Looking through all takes less than hashing all.
                wanted = set(self._among)
                docs = [wanted.intersection(each) for each in docs]
            self._hashed = set().union(*docs)
        return self._hashed


Base: TypeAlias = Sequence[int] | Runs | AnyOf | Heap


class Kept:
    """The documents of one set that pass tests, which are made only as far as somebody walks."""

    __slots__ = ("docs", "tests")

    def __init__(self, docs: Base, tests: tuple[Test, ...]) -> None:
        self.docs = docs
        self.tests = tests

    def __len__(self) -> int:
        """How many there are at most."""
        return len(self.docs)

    def __iter__(self) -> Iterator[int]:
        return self._walk(iter(self.docs))

    def __reversed__(self) -> Iterator[int]:
        return self._walk(reversed(self.docs))

    def _walk(self, docs: Iterator[int]) -> Iterator[int]:
        size = PIECE
        while piece := list(islice(docs, size)):
            size = min(4 * size, PIECE_MAX)
            yield from _passing(piece, self.tests)


class Sorted:
    """A rising sequence that is asked, not walked."""

    __slots__ = ("_docs",)

    def __init__(self, docs: Sequence[int]) -> None:
        self._docs = docs

    def keep(self, docs: Sequence[int]) -> Sequence[int]:
        """Return those of ``docs`` that are in it."""
        among = self._docs
        begin, end = stretch(among, docs)
        if end - begin <= HASH_RATIO * len(docs):
            hashed = set(among[begin:end])
            return [doc for doc in docs if doc in hashed]
        return [doc for doc in docs if (at := bisect_left(among, doc, begin, end)) < end and among[at] == doc]


class Within:
    """The documents of a range."""

    __slots__ = ("_docs",)

    def __init__(self, docs: range) -> None:
        self._docs = docs

    def keep(self, docs: Sequence[int]) -> Sequence[int]:
        """Return those of ``docs`` that are in it."""
        return [doc for doc in docs if doc in self._docs]


class Without:
    """The documents that do not pass tests."""

    __slots__ = ("_tests",)

    def __init__(self, tests: tuple[Test, ...]) -> None:
        self._tests = tests

    def keep(self, docs: Sequence[int]) -> Sequence[int]:
        """Return those of ``docs`` that are not in the set."""
        gone = set(_passing(docs, self._tests))
        return [doc for doc in docs if doc not in gone] if gone else docs


DocSet: TypeAlias = Base | Kept
EMPTY: Final[DocSet] = ()


def _passing(docs: Sequence[int], tests: Iterable[Test]) -> Sequence[int]:
    for test in tests:
        if not docs:
            break
        docs = test.keep(docs)
    return docs


def _parts(docs: DocSet) -> tuple[Base, tuple[Test, ...]]:
    return (docs.docs, docs.tests) if isinstance(docs, Kept) else (docs, ())


def _tests_of(docs: DocSet) -> tuple[Test, ...]:
    base, tests = _parts(docs)
    return (_test_of(base), *tests)


def _test_of(docs: Base) -> Test:
    if isinstance(docs, (Runs, AnyOf, Heap)):
        return docs
    return Within(docs) if isinstance(docs, range) else Sorted(docs)


def stretch(among: Sequence[int], docs: Sequence[int]) -> tuple[int, int]:
    """Return where in the rising ``among`` the documents from the first to the last of ``docs`` stand."""
    low, high = (docs[0], docs[-1]) if docs[0] <= docs[-1] else (docs[-1], docs[0])
    begin = bisect_left(among, low)
    return begin, bisect_right(among, high, begin)


def bounds(docs: DocSet) -> tuple[int, int]:
    """Return between which documents, both counted in, a filled set is."""
    base, _ = _parts(docs)
    if isinstance(base, Runs):
        return base.firsts[0], base.lasts[-1]
    return (0, DOC_MAX) if isinstance(base, (AnyOf, Heap)) else (base[0], base[-1])


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
    if isinstance(one, range):
        one, other = other, one
    if isinstance(other, range):
        base, tests = _parts(one)
        if isinstance(base, range):
            base = range(max(base.start, other.start), min(base.stop, other.stop))
        elif isinstance(base, (list, tuple, array)):
            base = base[bisect_left(base, other.start) : bisect_left(base, other.stop)]
        else:
            tests = (Within(other), *tests)
        return Kept(base, tests) if tests else base
    if isinstance(other, Runs):
        one, other = other, one
    if isinstance(one, Runs) and isinstance(other, array) and len(one.firsts) <= len(other):
        return one.cut(other)
    small, large = (one, other) if len(one) <= len(other) else (other, one)
    return passing(small, *_tests_of(large))


def passing(docs: DocSet, *tests: Test) -> DocSet:
    """Return the documents that pass tests, which are made in the order they were added."""
    base, others = _parts(docs)
    return Kept(base, (*others, *tests))


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
    return passing(one, Without(_tests_of(other))) if len(other) else one
