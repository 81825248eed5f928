"""Model settings and personality are stored and read back."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.core.conversations.rules.session_settings import (
    REASONING_EFFORTS,
    ModelSettings,
    Personality,
    decode_model_settings,
    decode_personality,
    encode_model_settings,
    encode_personality,
)
from keryx.errors import InvalidValue

names = st.text(min_size=1).filter(lambda text: bool(text.strip()))


@given(
    st.builds(
        ModelSettings,
        model=st.none() | names,
        temperature=st.none() | st.floats(0, 2),
        tokens_max=st.none() | st.integers(1, 10**9),
        reasoning_effort=st.none() | st.sampled_from(REASONING_EFFORTS),
        extra=st.dictionaries(st.text(), st.integers() | st.text()),
    )
)
@settings(max_examples=100)
def test_model_settings_are_read_back_unchanged(value: ModelSettings) -> None:
    encoded = encode_model_settings(value)
    assert encoded.isascii()
    assert decode_model_settings(encoded) == value


@given(names, names)
@settings(max_examples=100)
def test_a_personality_is_read_back_unchanged(name: str, text: str) -> None:
    value = Personality(name=name, text=text)
    assert decode_personality(encode_personality(value)) == value


def test_only_fields_that_are_set_are_stored() -> None:
    assert encode_model_settings(ModelSettings()) == "{}"
    assert encode_model_settings(ModelSettings(model="m", temperature=0)) == '{"model":"m","temperature":0}'


@pytest.mark.parametrize(
    "fields",
    [
        {"model": " "},
        {"model": 5},
        {"temperature": 2.1},
        {"temperature": -0.1},
        {"temperature": float("nan")},
        {"temperature": True},
        {"temperature": "warm"},
        {"tokens_max": 0},
        {"tokens_max": 1.5},
        {"reasoning_effort": "much"},
        {"extra": []},
        {"extra": {"a": float("inf")}},
    ],
)
def test_wrong_settings_cannot_be_constructed(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        ModelSettings(**fields)


@pytest.mark.parametrize(("name", "text"), [("", "x"), ("x", " "), (5, "x")])
def test_an_empty_personality_cannot_be_constructed(name: Any, text: str) -> None:
    with pytest.raises(InvalidValue, match="is empty"):
        Personality(name=name, text=text)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "5", "[" * 100_000, '{"colour":"red"}', '{"model":5}', '{"name":5}']
)
def test_damaged_settings_are_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(InvalidValue):
        decode_model_settings(text)
    with pytest.raises(InvalidValue):
        decode_personality(text)
