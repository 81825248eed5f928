"""Document sets behave like sets, whatever form they have."""

from array import array

from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.core.search.rules.document_sets import (
    DocumentSet,
    LazyUnion,
    PrefixDocuments,
    bounds,
    everything,
    filtered,
    intersect,
    range_filter,
    subtract,
    to_runs,
    unite,
)

DOCS = st.sets(st.integers(0, 64_999), max_size=40).map(sorted)


@given(DOCS.filter(bool))
@settings(max_examples=50)
def test_runs_hold_the_same_documents(docs: list[int]) -> None:
    runs = to_runs(docs)
    assert list(runs) == docs
    assert list(reversed(runs)) == docs[::-1]
    assert len(runs) == len(docs)
    assert all(doc in runs for doc in docs)
    assert not any(doc in runs for doc in set(range(100)) - set(docs))


@given(DOCS, DOCS, st.integers(0, 64_999))
@settings(max_examples=100)
def test_document_sets_behave_like_sets(one: list[int], other: list[int], end: int) -> None:
    forms: list[DocumentSet] = [
        array("H", other),
        to_runs(other),
        LazyUnion([other[:5], to_runs(other[5:])]),
        PrefixDocuments([other[5:], other[:9]]),
        PrefixDocuments([other[5:], other[:9]], among=[*one, *other]),
        other,
    ]
    assert list(intersect(array("H", one), to_runs(other))) == sorted(set(one) & set(other))
    assert list(intersect(to_runs(one), array("H", other))) == sorted(set(one) & set(other))
    for form in forms:
        assert list(intersect(one, form)) == sorted(set(one) & set(other))
        assert list(subtract(one, form)) == sorted(set(one) - set(other))
        assert list(unite([one, form])) == sorted({*one, *other})
        assert list(reversed(intersect(form, one))) == sorted(set(one) & set(other), reverse=True)
        assert list(reversed(intersect(everything(end), form))) == sorted(
            (doc for doc in other if doc < end), reverse=True
        )
        if other:
            first, last = bounds(form)
            assert first <= min(other)
            assert max(other) <= last
        both = intersect(intersect(everything(65_000), form), one)
        assert all((doc in both) == (doc in set(one) & set(other)) for doc in one[:3] + other[:3])
    assert list(subtract(one, range(end))) == [doc for doc in one if doc >= end]


def test_a_large_set_filters_a_small_one() -> None:
    few, many = [3, 500, 999], array("H", range(1_000))
    assert list(intersect(few, many)) == few
    assert list(subtract(few, many)) == []
    assert list(intersect(many, array("H", range(5, 900)))) == list(range(5, 900))
    assert len(intersect(few, many)) == 3
    assert list(reversed(LazyUnion([[1], [3, 2]]))) == [3, 2, 1]


def test_ranges_stay_ranges() -> None:
    assert intersect(everything(10), range(4)) == range(4)
    assert unite([[1], everything(5)]) == range(5)
    assert unite([]) == ()
    assert list(intersect(filtered(range(9), range_filter(range(3, 20))), [1, 4])) == [4]
    assert list(intersect(range(2, 5), filtered(range(9), range_filter(range(3, 20))))) == [3, 4]
    assert list(intersect(PrefixDocuments([[7, 1], [3]]), range(2, 8))) == [3, 7]
