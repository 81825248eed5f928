"""The shown part of results that are too long for a model."""

from hypothesis import given
from hypothesis import strategies as st

from keryx.core.media.rules import (
    HEAD_CHARACTERS,
    SHOWN_CHARACTERS_MAX,
    TAIL_CHARACTERS,
    long_result,
    text_of_result,
)


def test_a_result_up_to_the_limit_is_shown_whole() -> None:
    assert long_result("x" * SHOWN_CHARACTERS_MAX) is None
    assert long_result({"a": [1, 2, None]}) is None
    assert long_result(None) is None


def test_a_longer_result_is_shown_at_both_ends_with_the_call_that_reads_the_rest() -> None:
    text = "".join(f"{number}\n" for number in range(9_000))
    found = long_result(text)
    assert found is not None
    assert found.shown.startswith(text[:HEAD_CHARACTERS])
    assert found.shown.endswith(text[-TAIL_CHARACTERS:])
    assert f"[{len(text) - HEAD_CHARACTERS - TAIL_CHARACTERS} characters are left out here." in found.shown
    assert f'read_result with result "{found.hash}" and offset {HEAD_CHARACTERS} reads on.' in found.shown
    assert len(found.shown) <= SHOWN_CHARACTERS_MAX


def test_a_result_that_is_not_text_is_kept_as_json() -> None:
    found = long_result({"rows": ["ü" * 100] * 300})
    assert found is not None
    assert found.text.startswith('{\n "rows": [\n  "üüü')


@given(st.text(alphabet=st.characters(exclude_categories=()), min_size=1, max_size=50))
def test_a_kept_result_is_read_back_exactly(piece: str) -> None:
    found = long_result(piece * (SHOWN_CHARACTERS_MAX + 1))
    assert found is not None
    assert text_of_result(found.data) == found.text
