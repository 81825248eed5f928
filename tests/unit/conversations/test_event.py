"""Positions in the feed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keryx.core.conversations.rules.event import Position
from keryx.errors import InvalidValue

numbers = st.integers(min_value=0, max_value=2**63 - 1)


@given(numbers, numbers)
def test_a_position_survives_printing_and_parsing(xid: int, row: int) -> None:
    assert Position.parse(str(Position(xid, row))) == Position(xid, row)


@pytest.mark.parametrize(
    "text", ["", "1", "1.", ".1", "-1.2", "1.2.3", "a.b", "１.２", "1 .2", f"{2**63}.1", "9" * 5_000 + ".1"]
)
def test_an_invalid_position_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="feed position"):
        Position.parse(text)
