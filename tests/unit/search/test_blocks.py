"""Blocks and columns are read back as they were packed."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.core.search.rules.blocks import BLOCK_BYTES, TABLE_STEP, Block, TermEntry, pack_block, pack_blocks
from keryx.core.search.rules.columns import ColumnChunk, DocumentColumns, pack_columns
from keryx.core.search.rules.index_format import COUNT_MAX, LENGTH_MAX
from keryx.errors import StoreCorrupt
from tests.unit.search.documents import as_dict

DOCS = st.sets(st.integers(0, 64_999), max_size=40).map(sorted)


def test_an_entry_is_found_in_its_block() -> None:
    entries: list[TermEntry] = [
        ("\x01s1", [3, 900], b"\x00\x00", b""),
        ("alpha", [1, 700, 64_000], bytes([1, 2, 1]), bytes([5, 0, 255, 9])),
        ("beta", [2], b"\x01", b"\x07"),
    ]
    packed = pack_block(entries)
    block = Block(packed.data)
    assert packed.term == "\x01s1"
    assert block.terms == ["\x01s1", "alpha", "beta"]
    found = block.find("alpha")
    assert found is not None
    assert (list(found.docs), found.counts) == ([1, 700, 64_000], bytes([1, 2, 1]))
    assert found.counts_in([0, 700, 64_000, 65_000]) == [0, 2, 1, 0]
    beta = block.find("beta")
    assert beta is not None
    assert packed.positions[beta.position_offset(0, beta.offset_table(packed.positions)) :] == b"\x07"
    assert block.find("alp") is None
    assert block.find("zeta") is None
    assert [term for term, _ in block.find_prefix("al")] == ["alpha"]
    assert [term for term, _ in block.find_prefix("b")] == ["beta"]
    assert block.find_prefix("c") == []
    everywhere = (0, 65_000)
    assert list(block.prefix_docs("al", within=everywhere)) == [1, 700, 64_000]
    assert list(block.prefix_docs("al", within=(2, 700))) == [700]
    assert list(block.prefix_docs("\x01s", within=everywhere)) == [3, 900]
    assert list(block.prefix_docs("beta", within=everywhere)) == [2]
    assert list(block.prefix_docs("c", within=everywhere)) == []


@given(st.dictionaries(st.text("abc", min_size=1, max_size=4), DOCS.filter(bool), min_size=1))
@settings(max_examples=50)
def test_blocks_are_read_back_as_they_were_packed(postings: dict[str, list[int]]) -> None:
    entries: list[TermEntry] = [
        (term, docs, b"\x01" * len(docs), bytes(doc % 256 for doc in docs))
        for term, docs in sorted(postings.items())
    ]
    back = [
        (term, *postings)
        for packed in pack_blocks(entries)
        for term, postings in Block(packed.data).posting_lists(packed.positions)
    ]
    assert as_dict(back) == as_dict(entries)


@given(
    st.lists(st.lists(st.integers(1, COUNT_MAX), min_size=1, max_size=3 * TABLE_STEP), min_size=1, max_size=4)
)
@settings(max_examples=50)
def test_the_offset_table_leads_to_the_positions_of_each_document(
    counts: list[list[int]],
) -> None:
    entries: list[TermEntry] = [
        (f"a{number}", range(len(each)), bytes(each), bytes([number]) * sum(each))
        for number, each in enumerate(counts)
    ]
    packed = pack_block(entries)
    block = Block(packed.data)
    for number, each in enumerate(counts):
        found = block.find(f"a{number}")
        assert found is not None
        places = [
            found.position_offset(index, found.offset_table(packed.positions)) for index in range(len(each))
        ]
        assert [place - places[0] for place in places] == [sum(each[:index]) for index in range(len(each))]
        assert packed.positions[places[-1] : places[-1] + each[-1]] == bytes([number]) * each[-1]


@given(
    st.lists(DOCS.filter(bool), min_size=2, max_size=5),
    st.tuples(st.integers(0, 64_999), st.integers(0, 64_999)),
)
def test_the_documents_of_a_prefix_are_read_within_a_range(
    postings: list[list[int]], ends: tuple[int, int]
) -> None:
    entries: list[TermEntry] = [
        (f"a{number}", docs, b"\x01" * len(docs), bytes(len(docs))) for number, docs in enumerate(postings)
    ]
    within = (min(ends), max(ends))
    found = Block(pack_block(entries).data).prefix_docs("a", within=within)
    everywhere = {doc for docs in postings for doc in docs}
    assert {doc for doc in everywhere if within[0] <= doc <= within[1]} <= set(found) <= everywhere


def test_a_block_of_only_scope_terms_is_read_back() -> None:
    entries: list[TermEntry] = [("\x01a1", [5, 0], b"\x00\x00", b""), ("\x01s1", [4], b"\x00", b"")]
    packed = pack_block(entries)
    assert as_dict(
        [(term, *postings) for term, postings in Block(packed.data).posting_lists(packed.positions)]
    ) == as_dict(entries)


def test_a_few_counts_of_a_frequent_term_are_found() -> None:
    packed = pack_block([("x", list(range(0, 2_000, 2)), bytes([1, 2] * 500), b"")])
    found = Block(packed.data).find("x")
    assert found is not None
    assert found.counts_in([5_000, 1_998, 3, 2]) == [0, 2, 0, 2]
    assert found.counts_in([2, 3, 1_998]) == [2, 0, 2]


def test_a_damaged_block_or_chunk_is_refused() -> None:
    whole = pack_block([("x", [1], b"\x01", b"\x00")]).data
    for damaged in (b"", whole[:12], whole[:-1], b"\xff" * 40, whole[:8] + b"x" * 60):
        with pytest.raises(StoreCorrupt, match="rebuilt"):
            Block(damaged)
    for damaged in (b"", b"\xff" * 40):
        with pytest.raises(StoreCorrupt):
            ColumnChunk(damaged)


def test_blocks_stay_small_and_a_frequent_term_has_its_own_block() -> None:
    entries: list[TermEntry] = [(f"t{index:05}", [index], b"\x01", b"\x00") for index in range(1_000)]
    entries.append(("u", list(range(5_000)), b"\x01" * 5_000, bytes(5_000)))
    packed = list(pack_blocks(entries))
    assert len(packed) > 1_000 * 12 // BLOCK_BYTES
    assert Block(packed[-1].data).terms == ["u"]
    assert list(pack_blocks([])) == []


@given(
    st.lists(
        st.tuples(st.integers(-(2**40), 2**40), st.integers(0, 2**52), st.integers(0, LENGTH_MAX)),
        min_size=1,
        max_size=20,
    )
)
@settings(max_examples=50)
def test_columns_are_read_back_as_they_were_packed(rows: list[tuple[int, int, int]]) -> None:
    ids, times, lengths = (list(column) for column in zip(*rows, strict=True))
    chunk = ColumnChunk(pack_columns(DocumentColumns(ids, times, lengths)))
    columns = chunk.columns()
    assert (list(columns.ids), list(columns.times), list(columns.lengths)) == (ids, times, lengths)
    assert [chunk.key(index) for index in range(len(rows))] == list(zip(times, ids, strict=True))
    assert list(chunk.lengths) == lengths
