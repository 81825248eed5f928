"""Intersection, union and difference of document sets. Work is put off until the result is iterated, where possible."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final

from keryx.core.search.rules.document_sets import (
    BaseSet,
    DocumentFilter,
    DocumentSet,
    ExclusionFilter,
    FilteredDocuments,
    LazyUnion,
    PrefixDocuments,
    RangeFilter,
    Runs,
    as_filter,
)

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
        filters = (RangeFilter(within), *filters)
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
    return filtered(one, ExclusionFilter(_filters_of(other))) if len(other) else one


def _split(docs: DocumentSet) -> tuple[BaseSet, tuple[DocumentFilter, ...]]:
    return (docs.docs, docs.filters) if isinstance(docs, FilteredDocuments) else (docs, ())


def _filters_of(docs: DocumentSet) -> tuple[DocumentFilter, ...]:
    base, filters = _split(docs)
    return (as_filter(base), *filters)
