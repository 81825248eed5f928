"""A phrase filter keeps at least the documents that hold the phrase."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from keryx.core.search.rules.blocks import Block, pack_blocks
from keryx.core.search.rules.document_sets import filtered
from keryx.core.search.rules.phrases import PhraseFilter, TokenPositions
from tests.unit.search.documents import build, document


@given(
    st.lists(st.text("ab ", max_size=12), min_size=1, max_size=60),
    st.integers(1, 20),
    st.sampled_from([1, -1]),
)
@example(["ba", ""] * 30, 8, -1)
@example(["ba", ""] * 60, 20, 1)
@settings(max_examples=100)
def test_a_phrase_is_found_in_the_same_documents_however_many_are_asked(
    texts: list[str], every: int, step: int
) -> None:
    texts = [" ".join(f"abc{text}".replace(" ", "x")) for text in texts]
    built = build(*(document(index + 1, text) for index, text in enumerate(texts)))
    packed = list(pack_blocks(built.entries))
    tokens = []
    for offset, token in enumerate("bba"):
        for number, each in enumerate(packed):
            postings = Block(each.data).find(token)
            if postings is not None:
                tokens.append(TokenPositions(offset, postings, block_id=number))
    asked = range(len(texts))[::every][::step]
    phrase = PhraseFilter(tokens, read=lambda ids: {each: packed[each].positions for each in ids})
    holding = [doc for doc in asked if "b b a" in texts[doc]]
    assert list(phrase.keep(asked)) == holding
    assert [doc for doc in asked if phrase.keep([doc])] == holding


def test_a_phrase_filter_keeps_documents_whose_tokens_may_be_adjacent() -> None:
    texts = ["a b", "b a", "a x b", "a b", "x " * 255 + "a b", "b " * 300 + "a", "a" + " x" * 256 + " b"]
    texts.append("a " * 300 + "b")
    built = build(*(document(index + 1, text) for index, text in enumerate(texts)))
    packed = next(pack_blocks(built.entries))
    block = Block(packed.data)
    reads: list[list[int]] = []

    def read(block_ids: list[int]) -> dict[int, bytes]:
        reads.append(list(block_ids))
        return {7: packed.positions}

    def phrase() -> PhraseFilter:
        found = [block.find("a"), block.find("b")]
        tokens = [
            TokenPositions(offset, postings, block_id=7)
            for offset, postings in enumerate(found)
            if postings is not None
        ]
        return PhraseFilter(tokens, read=read)  # type: ignore[arg-type]

    # The index does not know all positions of "b" in the sixth text, and in the seventh the tokens are adjacent modulo
    # 256: there the text decides.
    assert list(filtered(range(len(texts)), phrase().keep)) == [0, 3, 4, 5, 6, 7]
    assert list(reversed(filtered(range(len(texts)), phrase().keep))) == [7, 6, 5, 4, 3, 0]
    assert reads == [[7, 7], [7, 7]]
