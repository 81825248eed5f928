"""How the columns and posting lists of several segments become those of one.

Pure. The documents of the merged segment are numbered by (time, id) too, so the result equals a segment built at once.
"""

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Final

from keryx.core.search.rules.blocks import PostingList, TermEntry
from keryx.core.search.rules.columns import DocumentColumns
from keryx.core.search.rules.index_format import SCOPE
from keryx.core.search.rules.scope_terms import scope_docs, scope_entry

TERMS_BEFORE_YIELD: Final = 50
REMOVED: Final = 65_535
"""Stands in place of a new number: the document is left out."""


def renumber(
    columns: Sequence[DocumentColumns], *, removed: Sequence[frozenset[int]]
) -> tuple[DocumentColumns, list["array[int]"]]:
    """Return the merged columns of segments, and for each segment the new number of each of its documents.

    Documents in ``removed`` (one set for each segment) are left out, and so are all versions of a session card but
    the newest.
    """
    ordered: list[tuple[int, int, int, int, int]] = []
    for source, (ids, times, lengths) in enumerate(columns):
        left_out = removed[source]
        ordered.extend(
            (at, id_, source, number, length)
            for number, (id_, at, length) in enumerate(zip(ids, times, lengths, strict=True))
            if number not in left_out
        )
    latest = {each[1]: each[2:4] for each in ordered if each[1] < 0}
    if latest:
        ordered = [each for each in ordered if each[1] >= 0 or latest[each[1]] == each[2:4]]
    ordered.sort()
    numbers = [array("H", [REMOVED]) * len(source.ids) for source in columns]
    for number, (_, _, source, old, _) in enumerate(ordered):
        numbers[source][old] = number
    merged = DocumentColumns(
        [each[1] for each in ordered], [each[0] for each in ordered], [each[4] for each in ordered]
    )
    return merged, numbers


def merge_entries(
    sources: Sequence[Iterable[tuple[str, PostingList]]],
    numbers: Sequence["array[int]"],
    *,
    yield_control: Callable[[], None],
) -> Iterator[TermEntry]:
    """Yield the merged entries of segments, which come oldest first.

    The lists of words already have the new document numbers. Those of scope terms have the old ones, because runs do
    not stay runs; ``numbers`` map old to new.
    """
    found: defaultdict[str, list[PostingList]] = defaultdict(list)
    for source, renumbering in zip(sources, numbers, strict=True):
        is_whole = REMOVED not in renumbering
        for term, postings in source:
            is_final = is_whole and term[0] != SCOPE
            found[term].append(postings if is_final else _adapt(term, postings, renumbering))
        yield_control()
    for index, term in enumerate(sorted(found)):
        lists = [postings for postings in found[term] if postings[0]]
        if not lists:
            continue
        if term[0] == SCOPE:
            yield scope_entry(term, sorted(chain.from_iterable(postings[0] for postings in lists)))
        else:
            yield term, *(lists[0] if len(lists) == 1 else _join(lists))
        if not index % TERMS_BEFORE_YIELD:
            yield_control()


def _adapt(term: str, postings: PostingList, renumbering: "array[int]") -> PostingList:
    """Return the list of a scope term with the new numbers, or that of a word without removed documents."""
    docs, _, _ = postings
    if term[0] == SCOPE:
        return [new for new in map(renumbering.__getitem__, scope_docs(docs)) if new != REMOVED], b"", b""
    if REMOVED not in docs:
        return postings
    return _pack([each for each in _unpack(postings) if each[0] != REMOVED])


def _join(lists: Sequence[PostingList]) -> PostingList:
    """Return the lists of one term as one: end to end if their documents do not interleave."""
    if any(one[0][-1] > other[0][0] for one, other in pairwise(lists)):
        return _pack(sorted(chain.from_iterable(map(_unpack, lists))))
    docs, counts, positions = zip(*lists, strict=True)
    return list(chain.from_iterable(docs)), b"".join(counts), b"".join(positions)


def _unpack(postings: PostingList) -> Iterator[tuple[int, int, bytes]]:
    docs, counts, positions = postings
    begin = 0
    for doc, count in zip(docs, counts, strict=True):
        yield doc, count, positions[begin : begin + count]
        begin += count


def _pack(occurrences: Sequence[tuple[int, int, bytes]]) -> PostingList:
    return (
        [each[0] for each in occurrences],
        bytes([each[1] for each in occurrences]),
        b"".join([each[2] for each in occurrences]),
    )
