"""A growing answer is shown block by block, completely, and no text twice."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.platforms.terminal.answer_text import GrowingAnswer, complete_end, last_lines

TEXTS = [
    "One.\n\nTwo.",
    "# A\n\ntext\n```python\nx = 1\n\ny = 2\n```\nafter it\n",
    "- a\n\n  more of a\n\n- b\n\nend",
    "~~~\nnever closed\n\nat all",
    "````\n```\n````\nx\n\ny\n",
]


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("One.", ""),
        ("One.\n\n", ""),
        ("One.\n\nT", "One.\n\n"),
        ("One.\n\n  T", ""),
        ("One.\n\n  T\n\nU\n", "One.\n\n  T\n\n"),
        ("```\na\n\nb\n", ""),
        ("```\na\n\nb\n```\n", "```\na\n\nb\n```\n"),
        ("a\n\n```\nb\n\nc", "a\n\n"),
        ("````\n```\n\nx", ""),
    ],
)
def test_a_block_is_complete_when_another_begins_or_its_fence_is_closed(text: str, complete: str) -> None:
    assert text[: complete_end(text)] == complete


@pytest.mark.parametrize(
    ("text", "count", "last"),
    [
        ("a\nb\nc", 2, "b\nc"),
        ("a\nb", 9, "a\nb"),
        ("a\n```python\nb\nc", 9, "a\n```\nb\nc"),
        ("a\n````md\n```\nb\nc", 2, "````\nb\nc"),
        ("```python\nb\n```\nc", 2, "```\nc"),
    ],
)
def test_the_last_lines_of_growing_code_stay_code(text: str, count: int, last: str) -> None:
    assert last_lines(text, count) == last


def squeezed(shown: list[str]) -> str:
    return "".join("".join(shown).split())


@settings(max_examples=100)
@given(
    text=st.sampled_from(TEXTS), cuts=st.lists(st.integers(0, 60)), how=st.sampled_from(["live", "stored"])
)
def test_all_text_is_shown_once_and_in_order_for_any_pieces(text: str, cuts: list[int], how: str) -> None:
    shown: list[str] = []
    speech = GrowingAnswer(shown.append)
    places = sorted({0, *(cut for cut in cuts if cut < len(text)), len(text)})
    for first, last in pairwise(places):
        if how == "live":
            speech.add(1, after=1, offset=first, text=text[first:last])
        else:
            speech.add_stored(1, text[:last])
    speech.end(1, text)
    assert squeezed(shown) == "".join(text.split())


def test_text_before_a_call_is_shown_before_text_after_it() -> None:
    shown: list[str] = []
    speech = GrowingAnswer(shown.append)
    speech.add(1, after=1, offset=0, text="I look")
    speech.add(1, after=1, offset=6, text=" for it.")
    speech.add_stored(1, "I look")
    speech.add(1, after=1, offset=0, text="I ")
    speech.add(1, after=1, offset=2, text="found it.")
    speech.end(1, "I found it.")
    assert shown == ["I look for it.", "I found it."]
    assert speech.turn_id is None


def test_stored_text_before_a_call_is_shown_if_its_live_text_was_missed() -> None:
    shown: list[str] = []
    speech = GrowingAnswer(shown.append)
    speech.end_step(1, "I look.", seq=2)
    speech.add_stored(1, "I s")
    speech.end_step(1, "I see.", seq=4)
    speech.add(1, after=5, offset=0, text="heard so")
    speech.end_step(1, "stored otherwise", seq=7)
    assert shown == ["I look.", "I see.", "heard so"]


def test_late_live_text_is_not_shown_again_after_its_call() -> None:
    shown: list[str] = []
    speech = GrowingAnswer(shown.append)
    speech.end_step(1, "I look.", seq=2)
    speech.add(1, after=1, offset=0, text="I look.")
    assert speech.unfinished == ""
    speech.add(1, after=3, offset=0, text="I ")
    speech.end(1, "I found it.")
    assert shown == ["I look.", "I found it."]


@pytest.mark.parametrize("is_heard", [True, False])
def test_live_text_after_a_call_is_shown_after_the_text_of_the_call(*, is_heard: bool) -> None:
    shown: list[str] = []
    speech = GrowingAnswer(shown.append)
    if is_heard:
        speech.add(1, after=1, offset=0, text="I look.")
    speech.add(1, after=3, offset=0, text="I look")
    speech.end_step(1, "I look.", seq=2)
    speech.add(1, after=3, offset=6, text=" again.")
    speech.end(1, "I look again.")
    assert shown == ["I look.", "I look again."]


def test_an_answer_that_differs_from_its_live_text_is_shown_in_full() -> None:
    shown: list[str] = []
    speech = GrowingAnswer(shown.append)
    speech.add_stored(1, "It is")
    speech.add_stored(1, "It is 4")
    speech.add_stored(1, "I had to")
    speech.end(1, "I could not answer: no paper")
    assert shown == ["It is 4", "I had to", "I could not answer: no paper"]


def test_live_text_after_a_gap_is_shown_at_the_end() -> None:
    shown: list[str] = []
    speech = GrowingAnswer(shown.append)
    speech.add(1, after=1, offset=4, text="two")
    speech.end(1, "one two")
    assert shown == ["one two"]


def test_an_interrupted_answer_continues_where_it_stopped() -> None:
    shown: list[str] = []
    speech = GrowingAnswer(shown.append)
    speech.add(1, after=1, offset=0, text="one ")
    speech.add(2, after=1, offset=0, text="Other.")
    speech.end(1, "one two")
    speech.end(2, "Other.")
    speech.end(3, "Third.")
    speech.end(4, None)
    assert shown == ["one ", "two", "Other.", "Third."]


def test_a_stopped_answer_keeps_its_text() -> None:
    shown: list[str] = []
    speech = GrowingAnswer(shown.append)
    speech.add(1, after=1, offset=0, text="zero\n\none")
    assert (shown, speech.unfinished) == (["zero"], "one")
    speech.end(1, None)
    assert (shown, speech.unfinished) == (["zero", "one"], "")
