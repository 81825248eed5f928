"""Postings are read back as they were packed, and merging equals building at once."""

from array import array
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keryx.domain.docsets import (
    AnyOf,
    DocSet,
    Heap,
    Runs,
    Within,
    bounds,
    everything,
    intersect,
    passing,
    subtract,
    to_runs,
    unite,
)
from keryx.domain.phrases import Phrase, Standing
from keryx.domain.postings import (
    BLOCK_BYTES,
    COUNT_MAX,
    LENGTH_MAX,
    STEP,
    TERM_MAX,
    Block,
    Chunk,
    Columns,
    Entry,
    pack_block,
    pack_blocks,
    pack_columns,
)
from keryx.domain.segment import (
    GONE,
    Author,
    Built,
    Document,
    build_segment,
    document_scopes,
    join_marks,
    merge_entries,
    renumber,
    scope_docs,
    scope_term,
    session_mark,
)
from keryx.errors import StoreCorrupt

DOCS = st.sets(st.integers(0, 64_999), max_size=40).map(sorted)


def breathe() -> None:
    """Nobody waits in these tests."""


def document(id_: int, text: str, *, at: int | None = None, session: str = "s") -> Document:
    scopes = document_scopes(session_id=session, audience_id=1, platform="local", role="user")
    return Document(id=id_, created_at=id_ if at is None else at, text=text, scopes=scopes)


def build(*documents: Document) -> Built:
    return build_segment(documents, breathe=breathe)


def as_dict(entries: list[Entry]) -> dict[str, tuple[list[int], bytes, bytes]]:
    return {term: (list(docs), bytes(counts), bytes(positions)) for term, docs, counts, positions in entries}


def random_documents(seed: int, count: int, *, first_id: int = 1) -> list[Document]:
    random = Random(seed)
    words = ["alpha", "beta", "gamma", "delta", "数据库", "c++", "x" * 80]
    return [
        document(
            first_id + index,
            " ".join(random.choice(words) for _ in range(random.randrange(8))),
            at=random.randrange(50),
            session=f"s{random.randrange(3)}",
        )
        for index in range(count)
    ]


def test_an_entry_is_found_in_its_block() -> None:
    entries: list[Entry] = [
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
    assert found.counts_of([0, 700, 64_000, 65_000]) == [0, 2, 1, 0]
    beta = block.find("beta")
    assert beta is not None
    assert packed.positions[beta.place(0, beta.table(packed.positions)) :] == b"\x07"
    assert block.find("alp") is None
    assert block.find("zeta") is None
    assert [term for term, _ in block.find_from("al")] == ["alpha"]
    assert [term for term, _ in block.find_from("b")] == ["beta"]
    assert block.find_from("c") == []
    everywhere = (0, 65_000)
    assert list(block.docs_from("al", within=everywhere)) == [1, 700, 64_000]
    assert list(block.docs_from("al", within=(2, 700))) == [700]
    assert list(block.docs_from("\x01s", within=everywhere)) == [3, 900]
    assert list(block.docs_from("beta", within=everywhere)) == [2]
    assert list(block.docs_from("c", within=everywhere)) == []


@given(st.dictionaries(st.text("abc", min_size=1, max_size=4), DOCS.filter(bool), min_size=1))
@settings(max_examples=50)
def test_blocks_are_read_back_as_they_were_packed(postings: dict[str, list[int]]) -> None:
    entries: list[Entry] = [
        (term, docs, b"\x01" * len(docs), bytes(doc % 256 for doc in docs))
        for term, docs in sorted(postings.items())
    ]
    back = [
        (term, *piece)
        for packed in pack_blocks(entries)
        for term, piece in Block(packed.data).pieces(packed.positions)
    ]
    assert as_dict(back) == as_dict(entries)


@given(st.lists(st.lists(st.integers(1, COUNT_MAX), min_size=1, max_size=3 * STEP), min_size=1, max_size=4))
@settings(max_examples=50)
def test_the_positions_of_any_document_are_found_without_counting_through_all(
    counts: list[list[int]],
) -> None:
    entries: list[Entry] = [
        (f"a{number}", range(len(each)), bytes(each), bytes([number]) * sum(each))
        for number, each in enumerate(counts)
    ]
    packed = pack_block(entries)
    block = Block(packed.data)
    for number, each in enumerate(counts):
        found = block.find(f"a{number}")
        assert found is not None
        places = [found.place(index, found.table(packed.positions)) for index in range(len(each))]
        assert [place - places[0] for place in places] == [sum(each[:index]) for index in range(len(each))]
        assert packed.positions[places[-1] : places[-1] + each[-1]] == bytes([number]) * each[-1]


@given(
    st.lists(DOCS.filter(bool), min_size=2, max_size=5),
    st.tuples(st.integers(0, 64_999), st.integers(0, 64_999)),
)
def test_what_begins_alike_is_read_within_a_stretch(postings: list[list[int]], ends: tuple[int, int]) -> None:
    entries: list[Entry] = [
        (f"a{number}", docs, b"\x01" * len(docs), bytes(len(docs))) for number, docs in enumerate(postings)
    ]
    within = (min(ends), max(ends))
    found = Block(pack_block(entries).data).docs_from("a", within=within)
    everywhere = {doc for docs in postings for doc in docs}
    assert {doc for doc in everywhere if within[0] <= doc <= within[1]} <= set(found) <= everywhere


def test_marks_of_several_segments_are_those_of_one() -> None:
    one = build(document(1, "x", session="s1"), document(2, "x", session="s2"))
    other = build(document(3, "x", session="s2"), document(4, "x", session="s3"))
    together = join_marks([one.marks, other.marks])
    assert together == join_marks(session_mark(scope_term("s", name)) for name in ("s1", "s2", "s3"))
    assert session_mark(scope_term("s", "s4")) not in together


def test_a_block_of_scope_terms_alone_is_read_back() -> None:
    entries: list[Entry] = [("\x01a1", [5, 0], b"\x00\x00", b""), ("\x01s1", [4], b"\x00", b"")]
    packed = pack_block(entries)
    assert as_dict(
        [(term, *piece) for term, piece in Block(packed.data).pieces(packed.positions)]
    ) == as_dict(entries)


def test_few_counts_of_a_frequent_term_are_looked_up_one_by_one() -> None:
    packed = pack_block([("x", list(range(0, 2_000, 2)), bytes([1, 2] * 500), b"")])
    found = Block(packed.data).find("x")
    assert found is not None
    assert found.counts_of([5_000, 1_998, 3, 2]) == [0, 2, 0, 2]
    assert found.counts_of([2, 3, 1_998]) == [2, 0, 2]


def test_a_damaged_block_says_so() -> None:
    whole = pack_block([("x", [1], b"\x01", b"\x00")]).data
    for damaged in (b"", whole[:12], whole[:-1], b"\xff" * 40, whole[:8] + b"x" * 60):
        with pytest.raises(StoreCorrupt, match="built anew"):
            Block(damaged)
    for damaged in (b"", b"\xff" * 40):
        with pytest.raises(StoreCorrupt):
            Chunk(damaged)


def test_blocks_stay_small_and_a_frequent_term_has_its_own() -> None:
    entries: list[Entry] = [(f"t{index:05}", [index], b"\x01", b"\x00") for index in range(1_000)]
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
    chunk = Chunk(pack_columns(Columns(ids, times, lengths)))
    columns = chunk.columns()
    assert (list(columns.ids), list(columns.times), list(columns.lengths)) == (ids, times, lengths)
    assert [chunk.key(index) for index in range(len(rows))] == list(zip(times, ids, strict=True))
    assert list(chunk.lengths) == lengths


def test_documents_are_numbered_by_time() -> None:
    built = build(document(1, "late word", at=9), document(2, "early", at=3), document(3, "late too", at=9))
    assert built.columns == Columns([2, 1, 3], [3, 9, 9], [1, 2, 2])
    entries = as_dict(built.entries)
    assert entries["late"] == ([1, 2], b"\x01\x01", b"\x00\x00")
    assert entries["word"] == ([1], b"\x01", b"\x01")


def test_positions_are_kept_modulo_256() -> None:
    entries = as_dict(build(document(1, "x " * 300 + "end")).entries)
    assert entries["end"] == ([0], b"\x01", bytes([300 % 256]))
    assert entries["x"] == ([0], bytes([COUNT_MAX]), bytes(range(255)))


def test_counts_above_the_limit_are_cut_for_their_document_only() -> None:
    entries = as_dict(build(document(1, "x"), document(2, "x " * 300), document(3, "x x")).entries)
    assert entries["x"] == ([0, 1, 2], bytes([1, COUNT_MAX, 2]), b"\x00" + bytes(range(255)) + b"\x00\x01")


def test_long_terms_are_cut_and_those_that_begin_alike_fall_together() -> None:
    one, other = "a" * TERM_MAX + "b", "a" * TERM_MAX + "c"
    entries = as_dict(build(document(1, one), document(2, f"{other} {one}")).entries)
    assert entries["a" * TERM_MAX] == ([0, 1], b"\x01\x02", b"\x00\x00\x01")
    assert one not in entries


def test_scopes_are_what_filters_ask_for() -> None:
    scopes = document_scopes(
        session_id="s1",
        audience_id=4,
        platform="My Platform",
        role="user",
        author=Author("Ana Díaz", 7),
        features=["link"],
    )
    assert {each[1:] for each in scopes} == {
        "ss1",
        "a4",
        "pmy platform",
        "ruser",
        "fana",
        "fdiaz",
        "f7",
        "hlink",
    }
    assert document_scopes(session_id="s", audience_id=1, platform="local", author=Author(None, 3))[
        -1
    ] == scope_term("f", 3)


@given(DOCS.filter(bool))
@settings(max_examples=50)
def test_a_scope_is_kept_as_runs_where_that_is_shorter(docs: list[int]) -> None:
    runs = to_runs(docs)
    assert list(runs) == docs
    assert list(reversed(runs)) == docs[::-1]
    assert len(runs) == len(docs)
    assert all(doc in runs for doc in docs)
    assert not any(doc in runs for doc in set(range(100)) - set(docs))


def test_dense_scopes_become_runs_and_sparse_ones_do_not() -> None:
    dense = build(*(document(index, "x") for index in range(1, 20)))
    (runs,) = (entry for entry in dense.entries if entry[0] == scope_term("s", "s"))
    assert list(runs[1]) == [18, 0]
    assert isinstance(scope_docs(runs[1]), Runs)
    sparse = build(*(document(index, "x", session=f"s{index % 2}") for index in range(1, 20)))
    (single,) = (entry for entry in sparse.entries if entry[0] == scope_term("s", "s0"))
    assert list(scope_docs(single[1])) == list(range(1, 19, 2))


@pytest.mark.parametrize("seed", range(8))
def test_merging_segments_equals_building_one(seed: int) -> None:
    parts = [random_documents(seed * 10 + index, 12, first_id=1 + 12 * index) for index in range(3)]
    built = [build(*part) for part in parts]
    columns, numbers = renumber([each.columns for each in built], gone=[frozenset()] * 3)
    merged = list(merge_entries(_sources(built, numbers), numbers, breathe=breathe))
    whole = build(*(each for part in parts for each in part))
    assert as_dict(merged) == as_dict(whole.entries)
    assert columns == Columns(*(list(column) for column in whole.columns))


@pytest.mark.parametrize("seed", range(8))
def test_documents_that_are_gone_leave_no_word(seed: int) -> None:
    documents = random_documents(seed, 20)
    built = build(*documents)
    gone = frozenset(range(0, 20, 3))
    kept_ids = [id_ for number, id_ in enumerate(built.columns.ids) if number not in gone]
    columns, numbers = renumber([built.columns], gone=[gone])
    merged = list(merge_entries(_sources([built], numbers), numbers, breathe=breathe))
    rest = build(*(each for each in documents if each.id in kept_ids))
    assert as_dict(merged) == as_dict(rest.entries)
    assert list(columns.ids) == kept_ids
    assert all((numbers[0][number] == GONE) == (number in gone) for number in range(20))


def test_only_the_newest_of_a_sessions_cards_stays() -> None:
    old, new = (
        build(document(-1, "old name", at=5)),
        build(document(-1, "new name", at=5), document(2, "text")),
    )
    columns, numbers = renumber([old.columns, new.columns], gone=[frozenset(), frozenset()])
    merged = as_dict(list(merge_entries(_sources([old, new], numbers), numbers, breathe=breathe)))
    assert list(columns.ids) == [2, -1]
    assert "old" not in merged
    assert merged["name"][0] == [1]


def _sources(
    built: list[Built], numbers: "list[array[int]]"
) -> list[list[tuple[str, tuple[list[int], bytes, bytes]]]]:
    """What reading the blocks of the segments gives: words under their new numbers."""
    return [
        [
            (term, (list(piece[0]), piece[1], piece[2]))
            for packed in pack_blocks(each.entries)
            for term, piece in Block(packed.data).pieces(packed.positions, renumbering=new)
        ]
        for each, new in zip(built, numbers, strict=True)
    ]


@given(DOCS, DOCS, st.integers(0, 64_999))
@settings(max_examples=100)
def test_sets_of_documents_behave_like_sets(one: list[int], other: list[int], end: int) -> None:
    forms: list[DocSet] = [
        array("H", other),
        to_runs(other),
        AnyOf([other[:5], to_runs(other[5:])]),
        Heap([other[5:], other[:9]]),
        Heap([other[5:], other[:9]], among=[*one, *other]),
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


def test_large_sets_are_tested_and_not_hashed() -> None:
    few, many = [3, 500, 999], array("H", range(1_000))
    assert list(intersect(few, many)) == few
    assert list(subtract(few, many)) == []
    assert list(intersect(many, array("H", range(5, 900)))) == list(range(5, 900))
    assert len(intersect(few, many)) == 3
    assert list(reversed(AnyOf([[1], [3, 2]]))) == [3, 2, 1]


def test_ranges_stay_ranges() -> None:
    assert intersect(everything(10), range(4)) == range(4)
    assert unite([[1], everything(5)]) == range(5)
    assert unite([]) == ()
    assert list(intersect(passing(range(9), Within(range(3, 20))), [1, 4])) == [4]
    assert list(intersect(range(2, 5), passing(range(9), Within(range(3, 20))))) == [3, 4]
    assert list(intersect(Heap([[7, 1], [3]]), range(2, 8))) == [3, 7]


@given(
    st.lists(st.text("ab ", max_size=12), min_size=1, max_size=60),
    st.integers(1, 20),
    st.sampled_from([1, -1]),
)
@example(["ba", ""] * 30, 8, -1)
@example(["ba", ""] * 60, 20, 1)
@settings(max_examples=100)
def test_a_phrase_is_found_among_many_documents_as_among_few(texts: list[str], every: int, step: int) -> None:
    texts = [" ".join(f"abc{text}".replace(" ", "x")) for text in texts]
    built = build(*(document(index + 1, text) for index, text in enumerate(texts)))
    packed = list(pack_blocks(built.entries))
    standing = []
    for offset, token in enumerate("bba"):
        for number, each in enumerate(packed):
            posting = Block(each.data).find(token)
            if posting is not None:
                standing.append(Standing(offset, posting, block_id=number))
    asked = range(len(texts))[::every][::step]
    phrase = Phrase(standing, read=lambda ids: {each: packed[each].positions for each in ids})
    holding = [doc for doc in asked if "b b a" in texts[doc]]
    assert list(phrase.keep(asked)) == holding
    assert [doc for doc in asked if phrase.keep([doc])] == holding


def test_a_phrase_is_proposed_where_its_tokens_may_be_adjacent() -> None:
    texts = ["a b", "b a", "a x b", "a b", "x " * 255 + "a b", "b " * 300 + "a", "a" + " x" * 256 + " b"]
    texts.append("a " * 300 + "b")
    built = build(*(document(index + 1, text) for index, text in enumerate(texts)))
    packed = next(pack_blocks(built.entries))
    block = Block(packed.data)
    reads: list[list[int]] = []

    def read(block_ids: list[int]) -> dict[int, bytes]:
        reads.append(list(block_ids))
        return {7: packed.positions}

    def phrase() -> Phrase:
        postings = [block.find("a"), block.find("b")]
        return Phrase(
            [
                Standing(offset, posting, block_id=7)
                for offset, posting in enumerate(postings)
                if posting is not None
            ],
            read=read,  # type: ignore[arg-type]
        )

    # The sixth has "b" too often to know where, the seventh is right modulo 256: both are for the text to decide.
    assert list(passing(range(len(texts)), phrase())) == [0, 3, 4, 5, 6, 7]
    assert list(reversed(passing(range(len(texts)), phrase()))) == [7, 6, 5, 4, 3, 0]
    assert reads == [[7, 7], [7, 7]]
