"""A value of ours behaves as one of the standard library does, and defining one compiles nothing."""

import dataclasses
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keryx.values import dataclass
from tests.architecture.source import ROOT


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Where something is."""

    x: int
    y: int = 7
    tags: list[str] = field(default_factory=list, compare=False)
    secret: str = field(default="s", repr=False)

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("too far to the left")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pixel(Point):
    """A point that is seen."""

    colour: str = "red"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two that are given in order."""

    left: object
    right: object = None


@dataclass(frozen=True, slots=True)
class Nothing:
    """No field at all."""


@dataclass(frozen=True, slots=True)
class Shy:
    """One that says itself how it is shown."""

    name: str

    def __repr__(self) -> str:
        return "somebody"


def twin_of(ours: Any) -> Callable[..., Any]:
    """Return what the standard library makes of the same fields."""
    return dataclasses.make_dataclass(
        ours.__name__,
        [
            (
                each.name,
                each.type,
                field(
                    default=each.default,
                    default_factory=each.default_factory,
                    compare=each.compare,
                    repr=each.repr,
                    kw_only=each.kw_only,
                ),
            )
            for each in fields(ours)
        ],
        frozen=True,
        slots=True,
    )


TWINS: dict[Any, Callable[..., Any]] = {ours: twin_of(ours) for ours in (Point, Pixel, Pair, Nothing)}
WORDS = st.dictionaries(st.sampled_from(["x", "y", "tags", "secret", "colour", "left"]), st.integers(0, 2))


def outcome(make: Callable[..., Any], args: tuple[int, ...], named: dict[str, int]) -> tuple[str, object]:
    try:
        made = make(*args, **named)
    except TypeError as error:
        return "refused", str(error)
    return repr(made), asdict(made)


@given(st.sampled_from(list(TWINS)), st.lists(st.integers(0, 2), max_size=3), WORDS)
def test_it_takes_refuses_and_shows_what_the_standard_one_does(
    ours: Any, args: list[int], named: dict[str, int]
) -> None:
    assert outcome(ours, tuple(args), named) == outcome(TWINS[ours], tuple(args), named)


@given(st.integers(0, 1), st.integers(0, 1), st.integers(0, 1), st.integers(0, 1))
def test_values_are_equal_by_what_is_compared_and_then_hash_alike(a: int, b: int, c: int, d: int) -> None:
    one, other = Point(x=a, y=b, tags=["one"]), Point(x=c, y=d)
    assert (one == other) == ((a, b) == (c, d))
    assert one != other or hash(one) == hash(other)


def test_values_of_different_classes_are_never_equal() -> None:
    assert Point(x=1) != Pixel(x=1)
    assert Nothing() == Nothing()
    assert len({Nothing(), Nothing(), Pair(1), Pair(1), Pair(2)}) == 3


def test_nothing_can_be_changed_added_or_removed() -> None:
    point: Any = Pixel(x=1)
    with pytest.raises(FrozenInstanceError):
        point.x = 2
    with pytest.raises(FrozenInstanceError):
        point.z = 2
    with pytest.raises(FrozenInstanceError):
        del point.colour
    assert point == Pixel(x=1)
    assert not hasattr(point, "__dict__")


def test_each_value_has_a_fresh_default_and_is_judged_when_it_is_made() -> None:
    assert Point(x=1).tags is not Point(x=1).tags
    with pytest.raises(ValueError, match="too far"):
        Point(x=-1)
    with pytest.raises(ValueError, match="too far"):
        replace(Pixel(x=1), x=-1)


def test_replace_match_and_pickle_work() -> None:
    assert replace(Pixel(x=1, colour="blue"), y=2) == Pixel(x=1, y=2, colour="blue")
    match Pair("a", "b"):
        case Pair(left, right):
            assert (left, right) == ("a", "b")
    pixel = Pixel(x=1, tags=["here"])
    copy = pickle.loads(pickle.dumps(pixel))
    assert copy == pixel
    assert copy.tags == ["here"]


def test_what_a_class_says_itself_stays_and_a_value_within_itself_is_shown() -> None:
    assert repr(Shy("Ana")) == "somebody"
    ring: list[object] = []
    ring.append(Pair(ring))
    assert repr(ring) == "[Pair(left=[...], right=None)]"


def test_what_is_not_frozen_is_made_in_the_standard_way() -> None:
    @dataclass
    class Count:
        number: int = 0

    @dataclass(frozen=True, slots=True, order=True)
    class Size:
        number: int

    count = Count()
    count.number += 1
    assert count == Count(1)
    assert Size(1) < Size(2)


def test_a_start_compiles_next_to_none_of_its_values() -> None:
    program = """
import dataclasses
compiled = 0
def counting(*args):
    global compiled
    compiled += 1
    return exec(*args)
dataclasses.exec = counting
import keryx.app
print(compiled)
"""
    said = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert int(said) < 100, "six methods for each of more than two hundred values, as it was"
