"""JSON values: refusals, and the searchable texts in a value."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.core.values.json_value import DEPTH_MAX, JsonValue, check_json, leaves
from keryx.errors import InvalidValue

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(10**400), max_value=10**400)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def nested(depth: int) -> JsonValue:
    value: JsonValue = "core"
    for _ in range(depth):
        value = [value]
    return value


@given(json_values)
@settings(max_examples=100)
def test_a_checked_value_survives_json_unchanged(value: JsonValue) -> None:
    check_json(value, where="here")
    assert json.loads(json.dumps(value, allow_nan=False)) == value


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_without_a_json_form_are_refused(value: float) -> None:
    with pytest.raises(InvalidValue, match=r"here: .* has no JSON form"):
        check_json({"a": [value]}, where="here")


def test_keys_that_are_not_text_are_refused() -> None:
    with pytest.raises(InvalidValue, match="the key 1 is not text"):
        check_json({1: "a"}, where="here")


@pytest.mark.parametrize("value", [(1, 2), {1}, b"x", object()])
def test_other_python_values_are_refused(value: object) -> None:
    with pytest.raises(InvalidValue, match="is not a JSON value"):
        check_json([value], where="here")


def test_nesting_is_bounded_and_the_bound_is_allowed() -> None:
    check_json(nested(DEPTH_MAX), where="here")
    with pytest.raises(InvalidValue, match="nested deeper than 200"):
        check_json(nested(DEPTH_MAX + 1), where="here")


def test_a_cycle_is_refused() -> None:
    cycle: list[object] = [1, 2]
    cycle += [cycle, cycle]
    with pytest.raises(InvalidValue, match="nested deeper"):
        check_json(cycle, where="here")


def test_integers_that_python_does_not_print_are_refused() -> None:
    check_json(10**4000, where="here")
    with pytest.raises(InvalidValue, match="is too long"):
        check_json(10**5000, where="here")


def test_leaves_are_keys_and_plain_values_in_order() -> None:
    value: JsonValue = {"path": "a.txt", "lines": [1, 2.5, None, True, {"deep": ["x"]}]}
    assert list(leaves(value)) == ["path", "a.txt", "lines", "1", "2.5", "deep", "x"]
