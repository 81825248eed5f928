"""Sets of document numbers within a segment: rising sequences, lazy forms for long ones, and their operations.

A set never changes. Iteration reads documents in batches that grow: a caller that wants one page pays for little, and
a caller that wants everything pays little for each document. Operations are put off until iteration where possible.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Final, TypeAlias

BATCH_FIRST: Final = 32
"""Documents in the first batch of an iteration; each further batch is four times as large."""
BATCH_MAX: Final = 8_192
HASH_RATIO: Final = 6
"""A binary search for one document costs about as much as hashing this many."""


DocumentFilter: TypeAlias = Callable[[Sequence[int]], Sequence[int]]
"""Returns the members of some documents that are in a set, in the given order. The documents rise or fall."""


class Runs:
    """The documents from each ``firsts[i]`` to ``lasts[i]``; the runs rise and do not touch."""

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
        """Return the members of ``docs`` that are in a run."""
        firsts, lasts = self.firsts, self.lasts
        return [doc for doc in docs if (after := bisect_right(firsts, doc)) and doc <= lasts[after - 1]]

    def keep_rising(self, docs: "array[int]") -> "array[int]":
        """Return the members of the rising ``docs`` that are in a run, by one slice for each run."""
        found = array("H")
        end = 0
        for first, last in zip(self.firsts, self.lasts, strict=True):
            begin = bisect_left(docs, first, end)
            end = bisect_right(docs, last, begin)
            found += docs[begin:end]
        return found


class LazyUnion:
    """The documents of several sets, united only when the union is iterated."""

    __slots__ = ("_count", "_filters", "_sets")

    def __init__(self, sets: Sequence[Sequence[int] | Runs]) -> None:
        self._sets = sets
        self._filters = [as_filter(each) for each in sets]
        self._count = sum(map(len, sets))

    def __len__(self) -> int:
        """Return an upper bound: documents in several of the sets count several times."""
        return self._count

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(set().union(*self._sets)))

    def __reversed__(self) -> Iterator[int]:
        return iter(sorted(set().union(*self._sets), reverse=True))

    def keep(self, docs: Sequence[int]) -> Sequence[int]:
        """Return the members of ``docs`` that are in any of the sets."""
        found: set[int] = set()
        for each in self._filters:
            found.update(each(docs))
        return docs if len(found) == len(docs) else [doc for doc in docs if doc in found]


class PrefixDocuments:
    """The documents of all terms with a common prefix: unordered, and repeated if they hold several of the terms.

    With ``among`` the set is limited to those documents; callers then ask for no others.
    """

    __slots__ = ("_among", "_count", "_docs", "_hashed")

    def __init__(self, docs: Sequence[Sequence[int]], *, among: Iterable[int] | None = None) -> None:
        self._docs = docs
        self._among = among
        self._count = sum(map(len, docs))
        self._hashed: set[int] | None = None

    def __len__(self) -> int:
        """Return an upper bound: repeated documents count several times."""
        return self._count

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._hash()))

    def __reversed__(self) -> Iterator[int]:
        return iter(sorted(self._hash(), reverse=True))

    def keep(self, docs: Sequence[int]) -> Sequence[int]:
        """Return the members of ``docs`` that are in the set."""
        found = self._hash()
        return [doc for doc in docs if doc in found]

    def _hash(self) -> set[int]:
        if self._hashed is None:
            docs: Iterable[Iterable[int]] = self._docs
            if self._among is not None:
                # Intersecting first is faster than hashing every document.
                wanted = set(self._among)
                docs = [wanted.intersection(each) for each in docs]
            self._hashed = set().union(*docs)
        return self._hashed


BaseSet: TypeAlias = Sequence[int] | Runs | LazyUnion | PrefixDocuments


class FilteredDocuments:
    """The documents of one set that pass filters; the filters run only as far as the set is iterated."""

    __slots__ = ("docs", "filters")

    def __init__(self, docs: BaseSet, filters: tuple[DocumentFilter, ...]) -> None:
        self.docs = docs
        self.filters = filters

    def __len__(self) -> int:
        """Return an upper bound: the filters have not run yet."""
        return len(self.docs)

    def __iter__(self) -> Iterator[int]:
        return self._iterate(iter(self.docs))

    def __reversed__(self) -> Iterator[int]:
        return self._iterate(reversed(self.docs))

    def _iterate(self, docs: Iterator[int]) -> Iterator[int]:
        size = BATCH_FIRST
        while batch := list(islice(docs, size)):
            size = min(4 * size, BATCH_MAX)
            yield from apply_filters(batch, self.filters)


DocumentSet: TypeAlias = BaseSet | FilteredDocuments


def sorted_filter(among: Sequence[int]) -> DocumentFilter:
    """Return the filter that keeps the documents of a rising sequence."""

    def keep(docs: Sequence[int]) -> Sequence[int]:
        begin, end = index_range(among, docs)
        if end - begin <= HASH_RATIO * len(docs):
            hashed = set(among[begin:end])
            return [doc for doc in docs if doc in hashed]
        return [doc for doc in docs if (at := bisect_left(among, doc, begin, end)) < end and among[at] == doc]

    return keep


def range_filter(among: range) -> DocumentFilter:
    """Return the filter that keeps the documents of a range."""
    return lambda docs: [doc for doc in docs if doc in among]


def exclusion_filter(filters: tuple[DocumentFilter, ...]) -> DocumentFilter:
    """Return the filter that keeps the documents that fail at least one of the filters."""

    def keep(docs: Sequence[int]) -> Sequence[int]:
        excluded = set(apply_filters(docs, filters))
        return [doc for doc in docs if doc not in excluded] if excluded else docs

    return keep


def as_filter(docs: BaseSet) -> DocumentFilter:
    """Return the filter that keeps the documents of a set."""
    if isinstance(docs, (Runs, LazyUnion, PrefixDocuments)):
        return docs.keep
    return range_filter(docs) if isinstance(docs, range) else sorted_filter(docs)


def apply_filters(docs: Sequence[int], filters: Iterable[DocumentFilter]) -> Sequence[int]:
    """Return the members of ``docs`` that pass all filters, which run in the given order."""
    for each in filters:
        if not docs:
            break
        docs = each(docs)
    return docs


def index_range(among: Sequence[int], docs: Sequence[int]) -> tuple[int, int]:
    """Return from which index to which index of the rising ``among`` the range of ``docs`` lies."""
    low, high = (docs[0], docs[-1]) if docs[0] <= docs[-1] else (docs[-1], docs[0])
    begin = bisect_left(among, low)
    return begin, bisect_right(among, high, begin)


DOC_MAX: Final = 65_535
EMPTY: Final[DocumentSet] = ()


def everything(count: int) -> DocumentSet:
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


def bounds(docs: DocumentSet) -> tuple[int, int]:
    """Return a lower and an upper bound, both inclusive, of a set that is not empty."""
    base, _ = _split(docs)
    if isinstance(base, Runs):
        return base.firsts[0], base.lasts[-1]
    return (0, DOC_MAX) if isinstance(base, (LazyUnion, PrefixDocuments)) else (base[0], base[-1])


def intersect(one: DocumentSet, other: DocumentSet) -> DocumentSet:
    """Return the documents that are in both sets, rising."""
    if isinstance(one, range):
        one, other = other, one
    if isinstance(other, range):
        return _intersect_range(one, other)
    if isinstance(other, Runs):
        one, other = other, one
    if isinstance(one, Runs) and isinstance(other, array) and len(one.firsts) <= len(other):
        return one.keep_rising(other)
    small, large = (one, other) if len(one) <= len(other) else (other, one)
    return filtered(small, *_filters_of(large))


def _intersect_range(docs: DocumentSet, within: range) -> DocumentSet:
    base, filters = _split(docs)
    if isinstance(base, range):
        base = range(max(base.start, within.start), min(base.stop, within.stop))
    elif isinstance(base, (list, tuple, array)):
        base = base[bisect_left(base, within.start) : bisect_left(base, within.stop)]
    else:
        filters = (range_filter(within), *filters)
    return FilteredDocuments(base, filters) if filters else base


def filtered(docs: DocumentSet, *filters: DocumentFilter) -> DocumentSet:
    """Return the documents that pass the filters, which run in the order they were added."""
    base, others = _split(docs)
    return FilteredDocuments(base, (*others, *filters))


def unite(sets: Sequence[DocumentSet]) -> DocumentSet:
    """Return the documents that are in any of the sets, rising. A range must be a whole segment."""
    filled = [each for each in sets if len(each)]
    if len(filled) <= 1:
        return filled[0] if filled else EMPTY
    for each in filled:
        if isinstance(each, range):
            return each
    return sorted(set().union(*filled))


def subtract(one: DocumentSet, other: DocumentSet) -> DocumentSet:
    """Return the documents of ``one`` that are not in ``other``, rising."""
    return filtered(one, exclusion_filter(_filters_of(other))) if len(other) else one


def _split(docs: DocumentSet) -> tuple[BaseSet, tuple[DocumentFilter, ...]]:
    return (docs.docs, docs.filters) if isinstance(docs, FilteredDocuments) else (docs, ())


def _filters_of(docs: DocumentSet) -> tuple[DocumentFilter, ...]:
    base, filters = _split(docs)
    return (as_filter(base), *filters)
