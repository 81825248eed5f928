"""Any text has the same tokens in the index and in a query."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.core.search.rules.tokens import compose, fold, tokenize, word_spans, word_start

ANY_TEXT = st.text(alphabet=st.characters(), max_size=60)
SPECIAL = st.text(alphabet="aB1_ .+#\u0301é数据库ｶกขส👍\u200d🏽\ufe0fЁİßﬃ½한\n\x00\ud800", max_size=40)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The quick_brown fox, v1.2!", ["the", "quick_brown", "fox", "v1", "2"]),
        ("ana@x.org", ["ana", "x", "org"]),
        ("Café CAFE\u0301", ["cafe", "cafe"]),
        ("Ёлка Straße İstanbul ΆΛΦΑ", ["елка", "strasse", "istanbul", "αλφα"]),
        ("ﬃ Ｆｕｌｌ 𝐁old ½", ["ffi", "full", "bold", "12"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("مُحَمَّد", ["محمد"]),
        ("", []),
        (" \x00\ud800 … —", []),
        ("\u0301 x", ["x"]),
    ],
)
def test_words_lose_case_accents_and_width(text: str, words: list[str]) -> None:
    assert tokenize(text) == (words, [])


@pytest.mark.parametrize(
    ("text", "words", "extras"),
    [
        ("数据库 ok", ["数", "据", "库", "ok"], [(0, "数据"), (1, "据库")]),
        ("数 据", ["数", "据"], []),
        ("ｶﾅ", ["カ", "ナ"], [(0, "カナ")]),
        ("สวย", ["ส", "ว", "ย"], [(0, "สว"), (1, "วย")]),
        ("한국", ["한", "국"], [(0, "한국")]),
        ("👍🏽", ["👍", "🏽"], [(0, "👍🏽")]),
        ("👩\u200d💻", ["👩", "💻"], []),
    ],
)
def test_each_character_of_a_script_without_spaces_is_a_word_and_begins_a_pair(
    text: str, words: list[str], extras: list[tuple[int, str]]
) -> None:
    assert tokenize(text) == (words, extras)


@pytest.mark.parametrize(
    ("text", "extras"),
    [
        ("C++ and C#", [(0, "c++"), (2, "c#")]),
        ("use C++11", [(1, "c++")]),
        ("数C++", [(1, "c++")]),
        ("é C#", [(1, "c#")]),
        ("½ \u0301 é# 据#", [(1, "e#")]),
        ("issue#12 # x + +", []),
    ],
)
def test_names_that_end_in_signs_are_extra_tokens(text: str, extras: list[tuple[int, str]]) -> None:
    assert tokenize(text).extras == extras


@given(ANY_TEXT | SPECIAL)
@settings(max_examples=100)
def test_every_word_has_its_span(text: str) -> None:
    words = tokenize(text).words
    whole = compose(text)
    places = word_spans(text)
    assert len(places) == len(words)
    assert all(start < end for start, end in places)
    assert all(one[1] <= other[0] for one, other in pairwise(places))
    assert [tokenize(whole[start:end]).words for start, end in places] == [[word] for word in words]
    assert [word_start(whole, position) for position in range(len(words))] == [start for start, _ in places]


@given(ANY_TEXT | SPECIAL)
@settings(max_examples=100)
def test_an_extra_token_has_the_position_of_its_first_word(text: str) -> None:
    words, extras = tokenize(text)
    for position, extra in extras:
        assert extra.startswith(words[position])


@given(st.text(alphabet=st.characters(max_codepoint=127), max_size=60))
@settings(max_examples=100)
def test_ascii_text_has_the_same_tokens_beside_other_scripts(text: str) -> None:
    words, extras = tokenize(text)
    longer = tokenize(text + " é")
    assert longer == ([*words, "e"], extras)


def test_no_token_holds_a_separator_of_the_index() -> None:
    text = "".join(map(chr, range(0x3000)))
    assert not any(set(word) & {"\n", "\x01", "\x00", "*"} for word in tokenize(text).words)


def test_a_word_of_combining_marks_alone_has_no_token() -> None:
    assert fold("\u0301") == ""


@pytest.mark.parametrize("text", ["two words", "zwei Wörter"])
def test_the_start_of_a_word_after_the_last_is_an_index_error(text: str) -> None:
    with pytest.raises(IndexError):
        word_start(text, 2)
