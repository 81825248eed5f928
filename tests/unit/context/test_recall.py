"""The choice of notes: bounded, deterministic, and stable while no note changes."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.core.context.rules.recall import (
    NEWEST_MAX,
    NOTES_BYTES_MAX,
    NOTES_MAX,
    choose_notes,
    fingerprint,
    quoted_size_bytes,
    rank_notes,
)


@dataclass(frozen=True)
class Note:
    id: int
    text: str


WORDS = st.sampled_from(
    ["fig", "figs", "tea", "Rome", "train", "trains", "the", "ホテル", "旅行", "C++", "é"]
)
SENTENCES = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
TEXTS = SENTENCES | st.text(min_size=1, max_size=400)
NOTES = st.lists(TEXTS, max_size=60).map(lambda texts: [Note(n, text) for n, text in enumerate(texts, 1)])


def numbers(notes: list[Note]) -> list[int]:
    return [note.id for note in notes]


@settings(max_examples=40)
@given(NOTES, TEXTS)
def test_the_choice_is_part_of_the_notes_within_the_bounds_oldest_first(notes: list[Note], said: str) -> None:
    told = choose_notes(notes, said)
    assert set(told) <= set(notes)
    assert len(told) == len(set(told)) <= NOTES_MAX
    assert sum(map(quoted_size_bytes, told)) <= NOTES_BYTES_MAX
    assert numbers(told) == sorted(numbers(told))


@settings(max_examples=40)
@given(NOTES, TEXTS, st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(notes: list[Note], said: str, random: object) -> None:
    shuffled = list(notes)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert choose_notes(shuffled, said) == choose_notes(notes, said)


@settings(max_examples=40)
@given(st.lists(SENTENCES, max_size=NOTES_MAX), TEXTS, TEXTS)
def test_while_all_notes_fit_all_are_chosen_whatever_the_message(
    texts: list[str], said: str, other: str
) -> None:
    notes = [Note(number, text) for number, text in enumerate(texts, 1)]
    assert choose_notes(notes, said) == choose_notes(notes, other) == notes


@settings(max_examples=40)
@given(NOTES, TEXTS)
def test_chosen_notes_keep_their_order_for_another_message(notes: list[Note], said: str) -> None:
    before, after = choose_notes(notes, ""), choose_notes(notes, said)
    stayed = [note for note in before if note in after]
    assert [note for note in after if note in before] == stayed


@settings(max_examples=40)
@given(st.lists(SENTENCES, min_size=30, max_size=60), SENTENCES)
def test_the_newest_notes_are_chosen_whatever_the_message(texts: list[str], said: str) -> None:
    notes = [Note(number, text) for number, text in enumerate(texts, 1)]
    assert set(notes[-NEWEST_MAX:]) <= set(choose_notes(notes, said))


def many(*others: str) -> list[Note]:
    texts = [*others, *(f"Saw film {number}" for number in range(40))]
    return [Note(number, text) for number, text in enumerate(texts, 1)]


@pytest.mark.parametrize(
    ("note", "said"),
    [
        ("Likes figs.", "Is there a FIG in it?"),
        ("Takes the train to work", "trains again"),
        ("東京のホテルに泊まる", "ホテルはどこ？"),
        ("Writes C++", "c++ or rust"),
        ("Mag Bücher", "bucher"),
    ],
)
def test_an_old_note_is_chosen_if_the_message_shares_a_word_with_it(note: str, said: str) -> None:
    notes = many(note)
    assert notes[0] not in choose_notes(notes, "hello")
    assert notes[0] in choose_notes(notes, said)


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    notes = [Note(1, "the fig"), Note(2, "the tea"), Note(3, "the milk"), Note(4, "a pear")]
    assert numbers(rank_notes(notes, "the fig")) == [1, 3, 2]
    assert rank_notes(notes, "") == []


def test_a_note_that_is_too_long_gives_its_place_to_notes_that_fit() -> None:
    long = [Note(number, "\x00" * 240) for number in range(100, 110)]
    short = [Note(number, "Likes figs") for number in range(10)]
    told = choose_notes([*long, *short], "")
    assert set(short) <= set(told)
    assert 0 < len(set(long) & set(told)) < len(long)


def test_only_the_beginning_of_a_long_message_is_compared() -> None:
    notes = many("Likes figs")
    assert notes[0] in choose_notes(notes, "figs " + "word " * 100_000)
    assert notes[0] not in choose_notes(notes, "word " * 100_000 + "figs")


def test_notes_with_the_same_text_have_one_fingerprint() -> None:
    assert len({fingerprint(text) for text in ("Likes figs", " likes   FIGS. ", "LIKES\nfigs!")}) == 1
    assert fingerprint("Likes figs") != fingerprint("Likes pigs")
    assert fingerprint("\ud800") != fingerprint("?")
