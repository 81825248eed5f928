"""Sets of document numbers within a segment: rising sequences, and runs where they are long and dense.

A set is never changed once made. ``Runs`` stands for what is too large to be written out for one question.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeAlias


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


DocSet: TypeAlias = Sequence[int] | Runs
EMPTY: DocSet = ()


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
    small, large = (one, other) if len(one) <= len(other) else (other, one)
    if isinstance(large, range):
        return small if small is large or not small else [doc for doc in small if doc in large]
    if isinstance(large, Runs):
        return [doc for doc in small if doc in large]
    if len(small) * 16 < len(large):
        return [doc for doc in small if _holds(large, doc)]
    if isinstance(small, Runs):
        return [doc for doc in large if doc in small]
    return sorted(set(small).intersection(large))


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
    if not len(other):
        return one
    if isinstance(other, (Runs, range)):
        return [doc for doc in one if doc not in other]
    if len(one) * 16 < len(other):
        return [doc for doc in one if not _holds(other, doc)]
    gone = set(other)
    return [doc for doc in one if doc not in gone]


def _holds(docs: Sequence[int], doc: int) -> bool:
    index = bisect_left(docs, doc)
    return index < len(docs) and docs[index] == doc
