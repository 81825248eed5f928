"""Covers: where they apply, when they are refused, and the model's view."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.core.context.rules.cover import Cover, cover_refused, covers_on
from keryx.core.conversations.rules.branch import Branch
from keryx.errors import InvalidValue


@dataclass(frozen=True)
class Said:
    seq: int


def branch(no: int, parent: int, seq: int, session: str = "s") -> Branch:
    return Branch(
        session_id=session, no=no, parent_session_id="s", parent_no=parent, parent_seq=seq, reason="retry"
    )


def cover(first: int, last: int, *, no: int = 1, on: int = 0) -> Cover:
    return Cover(
        session_id="s",
        no=no,
        branch_no=on,
        first_seq=first,
        last_seq=last,
        summary="short",
        tokens_before=100,
        tokens_after=10,
        created_at=no,
    )


# Root 1..8; branch 1 starts after 4, branch 2 starts from branch 1 after 10; session f is a fork of branch 1 at 10.
BRANCHES = [Branch(session_id="s", no=0), branch(1, 0, 4), branch(2, 1, 10), branch(0, 1, 10, session="f")]


def held(*covers: Cover, no: int, session: str = "s") -> list[int]:
    return [found.no for found in covers_on(covers, BRANCHES, session_id=session, no=no)]


def test_a_cover_applies_to_every_branch_that_contains_its_range() -> None:
    shared = cover(1, 4, on=1)
    assert (
        held(shared, no=0)
        == held(shared, no=1)
        == held(shared, no=2)
        == held(shared, no=0, session="f")
        == [1]
    )


def test_a_cover_across_a_parting_applies_only_to_its_own_side() -> None:
    crossing = cover(3, 9, on=1)
    assert held(crossing, no=0) == []
    assert held(crossing, no=2) == held(crossing, no=0, session="f") == [1]
    assert held(cover(3, 11, on=1), no=2) == []


def test_the_widest_of_overlapping_covers_applies_and_of_equal_ones_the_newest() -> None:
    assert held(cover(1, 2, no=1), cover(1, 4, no=2), no=0) == [2]
    assert held(cover(1, 4, no=1), cover(1, 4, no=2), no=0) == [2]
    assert held(cover(3, 4, no=2), cover(1, 2, no=1), no=0) == [1, 2]


@pytest.mark.parametrize(("first", "last"), [(0, 3), (5, 4)])
def test_a_cover_of_an_empty_range_cannot_be_constructed(first: int, last: int) -> None:
    with pytest.raises(InvalidValue, match="the range is empty"):
        cover(first, last)


def test_a_cover_as_large_as_its_messages_cannot_be_constructed() -> None:
    with pytest.raises(InvalidValue, match="a summary must be smaller"):
        replace(cover(1, 4), tokens_after=100)


@pytest.mark.parametrize(
    ("first", "last", "tokens", "refusal"),
    [
        (1, 4, (100, 10), None),
        (3, 6, (100, 10), None),
        (2, 8, (100, 99), None),
        (1, 4, (100, 100), "not_smaller"),
        (4, 1, (100, 10), "empty"),
        (1, 5, (100, 10), "not_on_path"),
        (0, 4, (100, 10), "not_on_path"),
        (4, 8, (100, 10), "overlaps"),
        (1, 3, (100, 10), "overlaps"),
        (4, 4, (100, 10), "overlaps"),
    ],
)
def test_a_cover_is_refused_for_a_reason(
    first: int, last: int, tokens: tuple[int, int], refusal: str | None
) -> None:
    active = [] if refusal is None and first != 3 else [cover(3, 6)]
    assert cover_refused([1, 2, 3, 4, 6, 8], active, first_seq=first, last_seq=last, tokens=tokens) == refusal


def test_covers_outside_the_new_range_do_not_matter() -> None:
    active = [cover(1, 2), cover(6, 8)]
    assert cover_refused([1, 2, 3, 4, 6, 8], active, first_seq=3, last_seq=4, tokens=(9, 1)) is None


@given(st.sets(st.integers(1, 40)), st.lists(st.tuples(st.integers(1, 40), st.integers(0, 6)), max_size=5))
@settings(max_examples=100)
def test_a_model_reads_each_message_once_or_its_cover(seqs: set[int], ranges: list[tuple[int, int]]) -> None:
    messages = [Said(seq) for seq in sorted(seqs)]
    made = [cover(first, first + width, no=no) for no, (first, width) in enumerate(ranges)]
    covers = covers_on(made, BRANCHES[:1], session_id="s", no=0)
    assert [each.seq for each in messages] == sorted(seqs)
    for message in messages:
        over = [item for item in covers if item.first_seq <= message.seq <= item.last_seq]
        assert len(over) <= 1


def test_of_equal_covers_of_one_moment_the_sessions_own_applies_in_any_order() -> None:
    theirs = cover(1, 4, on=1)
    own = replace(theirs, session_id="f", branch_no=0)
    for covers in ((theirs, own), (own, theirs)):
        [found] = covers_on(covers, BRANCHES, session_id="f", no=0)
        assert found.session_id == "f"
