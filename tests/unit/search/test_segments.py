"""Documents become the entries of a segment, and a merge of segments equals one that was built at once."""

from array import array

import pytest

from keryx.core.search.rules.blocks import Block, pack_blocks
from keryx.core.search.rules.build_segment import REMOVED, BuiltSegment, merge_entries, renumber
from keryx.core.search.rules.columns import DocumentColumns
from keryx.core.search.rules.document_sets import Runs
from keryx.core.search.rules.index_format import COUNT_MAX, TERM_MAX
from keryx.core.search.rules.scope_terms import (
    author_words,
    document_scopes,
    join_marks,
    scope_docs,
    scope_term,
    session_mark,
)
from tests.unit.search.documents import as_dict, build, document, keep_control, random_documents


def test_documents_are_numbered_by_time() -> None:
    built = build(document(1, "late word", at=9), document(2, "early", at=3), document(3, "late too", at=9))
    assert built.columns == DocumentColumns([2, 1, 3], [3, 9, 9], [1, 2, 2])
    entries = as_dict(built.entries)
    assert entries["late"] == ([1, 2], b"\x01\x01", b"\x00\x00")
    assert entries["word"] == ([1], b"\x01", b"\x01")


def test_positions_are_kept_modulo_256() -> None:
    entries = as_dict(build(document(1, "x " * 300 + "end")).entries)
    assert entries["end"] == ([0], b"\x01", bytes([300 % 256]))
    assert entries["x"] == ([0], bytes([COUNT_MAX]), bytes(range(255)))


def test_a_count_above_the_limit_is_capped_for_its_document_only() -> None:
    entries = as_dict(build(document(1, "x"), document(2, "x " * 300), document(3, "x x")).entries)
    assert entries["x"] == ([0, 1, 2], bytes([1, COUNT_MAX, 2]), b"\x00" + bytes(range(255)) + b"\x00\x01")


def test_long_tokens_are_cut_and_share_a_term_if_they_begin_alike() -> None:
    one, other = "a" * TERM_MAX + "b", "a" * TERM_MAX + "c"
    entries = as_dict(build(document(1, one), document(2, f"{other} {one}")).entries)
    assert entries["a" * TERM_MAX] == ([0, 1], b"\x01\x02", b"\x00\x00\x01")
    assert one not in entries


def test_the_scopes_of_a_document_are_terms_for_its_filters() -> None:
    scopes = document_scopes(
        session_id="s1",
        audience_id=4,
        platform="My Platform",
        role="user",
        author_words=author_words("Ana Díaz", 7),
        features=["link"],
    )
    expected = {"ss1", "a4", "pmy platform", "ruser", "fana", "fdiaz", "f7", "hlink"}
    assert {each[1:] for each in scopes} == expected
    *_, last = document_scopes(
        session_id="s", audience_id=1, platform="local", author_words=author_words(None, 3)
    )
    assert last == scope_term("f", 3)


def test_dense_scopes_become_runs_and_sparse_scopes_do_not() -> None:
    dense = build(*(document(index, "x") for index in range(1, 20)))
    (runs,) = (entry for entry in dense.entries if entry[0] == scope_term("s", "s"))
    assert list(runs[1]) == [18, 0]
    assert isinstance(scope_docs(runs[1]), Runs)
    sparse = build(*(document(index, "x", session=f"s{index % 2}") for index in range(1, 20)))
    (single,) = (entry for entry in sparse.entries if entry[0] == scope_term("s", "s0"))
    assert list(scope_docs(single[1])) == list(range(1, 19, 2))


def test_the_marks_of_several_segments_are_joined() -> None:
    one = build(document(1, "x", session="s1"), document(2, "x", session="s2"))
    other = build(document(3, "x", session="s2"), document(4, "x", session="s3"))
    together = join_marks([one.marks, other.marks])
    assert together == join_marks(session_mark(scope_term("s", name)) for name in ("s1", "s2", "s3"))
    assert session_mark(scope_term("s", "s4")) not in together


@pytest.mark.parametrize("seed", range(8))
def test_merging_segments_equals_building_one(seed: int) -> None:
    parts = [random_documents(seed * 10 + index, 12, first_id=1 + 12 * index) for index in range(3)]
    built = [build(*part) for part in parts]
    columns, numbers = renumber([each.columns for each in built], removed=[frozenset()] * 3)
    merged = list(merge_entries(_sources(built, numbers), numbers, yield_control=keep_control))
    whole = build(*(each for part in parts for each in part))
    assert as_dict(merged) == as_dict(whole.entries)
    assert columns == DocumentColumns(*(list(column) for column in whole.columns))


@pytest.mark.parametrize("seed", range(8))
def test_removed_documents_leave_no_word(seed: int) -> None:
    documents = random_documents(seed, 20)
    built = build(*documents)
    removed = frozenset(range(0, 20, 3))
    kept_ids = [id_ for number, id_ in enumerate(built.columns.ids) if number not in removed]
    columns, numbers = renumber([built.columns], removed=[removed])
    merged = list(merge_entries(_sources([built], numbers), numbers, yield_control=keep_control))
    rest = build(*(each for each in documents if each.id in kept_ids))
    assert as_dict(merged) == as_dict(rest.entries)
    assert list(columns.ids) == kept_ids
    assert all((numbers[0][number] == REMOVED) == (number in removed) for number in range(20))


def test_only_the_newest_version_of_a_session_card_is_kept() -> None:
    old = build(document(-1, "old name", at=5))
    new = build(document(-1, "new name", at=5), document(2, "text"))
    columns, numbers = renumber([old.columns, new.columns], removed=[frozenset(), frozenset()])
    merged = as_dict(list(merge_entries(_sources([old, new], numbers), numbers, yield_control=keep_control)))
    assert list(columns.ids) == [2, -1]
    assert "old" not in merged
    assert merged["name"][0] == [1]


def _sources(
    built: list[BuiltSegment], numbers: "list[array[int]]"
) -> list[list[tuple[str, tuple[list[int], bytes, bytes]]]]:
    """Return the posting lists read from the blocks of segments; those of words have the new numbers."""
    return [
        [
            (term, (list(postings[0]), postings[1], postings[2]))
            for packed in pack_blocks(each.entries)
            for term, postings in Block(packed.data).posting_lists(packed.positions, renumbering=new)
        ]
        for each, new in zip(built, numbers, strict=True)
    ]
