"""Columns hold JSON in ASCII, and labels that every database accepts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.store.codec import clean_text, from_json, to_json

ANY_TEXT = st.text(alphabet=st.characters(codec=None, categories=None))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=100)
@given(JSON)
def test_json_is_ascii_and_is_read_back_unchanged(value: object) -> None:
    text = to_json(value)
    assert from_json(text) == value
    assert text.isascii()
    assert "\x00" not in text


def test_a_value_without_a_json_form_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        to_json(float("nan"))


@settings(max_examples=100)
@given(ANY_TEXT)
def test_a_cleaned_label_is_storable_and_as_long_as_before(text: str) -> None:
    cleaned = clean_text(text)
    assert "\x00" not in cleaned
    assert len(cleaned.encode().decode()) == len(text)


def test_a_clean_label_stays_unchanged() -> None:
    assert clean_text("Ünïcode 🎈 ok") == "Ünïcode 🎈 ok"
    assert clean_text("a\x00b\udc80c") == "a\ufffdb\ufffdc"
    assert clean_text(None) is None
