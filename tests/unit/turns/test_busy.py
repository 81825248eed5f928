"""Busy modes: overrides, stopping a turn, and the items that a turn takes."""

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.clock import MINUTE, SECOND
from keryx.core.turns.rules.busy import (
    BUSY_MODES,
    BusyMode,
    Claim,
    WaitingMessage,
    claimable,
    collect_ready_at,
    rollback_allowed,
    split_override,
    stops_turn,
)
from keryx.core.turns.rules.inbox import InboxKind


def waiting(*modes: BusyMode, kind: InboxKind = "message") -> list[WaitingMessage]:
    return [
        WaitingMessage(id=no, kind=kind, mode=mode, received_at=no * SECOND) for no, mode in enumerate(modes)
    ]


def taken(items: list[WaitingMessage], now: int = 0) -> list[int]:
    return [item.id for item in claimable(items, now=now).items]


@pytest.mark.parametrize(
    ("text", "mode", "rest"),
    [
        ("!stop do this instead", "interrupt", "do this instead"),
        ("!STEER\nleft", "steer", "left"),
        ("  !rollback x", "rollback", "x"),
        ("!queue x", "queue", "x"),
        ("!collect x", "collect", "x"),
        ("!interrupt x", "interrupt", "x"),
        ("!stop", "interrupt", ""),
        ("!stopping by", None, "!stopping by"),
        ("!important", None, "!important"),
        ("!!stop", None, "!!stop"),
        ("please !stop", None, "please !stop"),
        ("", None, ""),
    ],
)
def test_a_message_can_choose_its_mode(text: str, mode: BusyMode | None, rest: str) -> None:
    assert split_override(text) == (mode, rest)


def test_interrupt_and_rollback_stop_a_running_turn() -> None:
    assert [mode for mode in BUSY_MODES if stops_turn(mode)] == ["interrupt", "rollback"]


def test_only_a_turn_with_pure_calls_may_be_rolled_back() -> None:
    assert rollback_allowed([])
    assert rollback_allowed(["pure", "pure"])
    assert not rollback_allowed(["pure", "once"])
    assert not rollback_allowed(["idempotent"])


def test_collecting_waits_for_a_pause_but_not_beyond_the_maximum() -> None:
    assert collect_ready_at(first_at=0, last_at=0) == 3 * SECOND
    assert collect_ready_at(first_at=0, last_at=10 * SECOND) == 13 * SECOND
    assert collect_ready_at(first_at=0, last_at=29 * SECOND) == 30 * SECOND


def test_queued_messages_go_one_by_one() -> None:
    assert taken(waiting("queue", "queue")) == [0]
    assert taken(waiting("queue", "collect")) == [0]


def test_steering_goes_with_the_message_before_it() -> None:
    assert taken(waiting("queue", "steer", "steer", "queue", "steer")) == [0, 1, 2]
    assert taken(waiting("steer", "queue")) == [0]


@pytest.mark.parametrize("mode", ["interrupt", "rollback"])
def test_an_interruption_takes_all_waiting_messages(mode: BusyMode) -> None:
    assert taken(waiting("queue", "collect", mode, "queue")) == [0, 1, 2, 3]


def test_collected_messages_go_together_after_their_pause() -> None:
    items = waiting("collect", "collect")
    assert claimable(items, now=4 * SECOND - 1) == Claim(wait_until=4 * SECOND)
    assert taken(items, now=4 * SECOND) == [0, 1]


def test_collecting_ends_when_another_item_waits_behind() -> None:
    assert taken(waiting("collect", "collect", "queue", "collect")) == [0, 1]
    assert taken([*waiting("collect"), *waiting("queue", kind="schedule")]) == [0]


@pytest.mark.parametrize("modes", [("queue", "steer"), ("collect", "collect"), ("queue", "interrupt")])
def test_messages_of_two_people_are_two_turns(modes: tuple[BusyMode, BusyMode]) -> None:
    ana, ben = (
        WaitingMessage(id=no, kind="message", mode=mode, received_at=0, person_id=no)
        for no, mode in enumerate(modes)
    )
    assert taken([ana, ben]) == [0]
    assert taken([ben], now=MINUTE) == [1]


@pytest.mark.parametrize("kind", [kind for kind in get_args(InboxKind) if kind != "message"])
def test_an_item_that_is_not_a_message_gets_its_own_turn(kind: InboxKind) -> None:
    fire = WaitingMessage(id=7, kind=kind, mode="queue", received_at=0)
    assert taken([fire, *waiting("interrupt")]) == [7]
    assert taken([*waiting("interrupt"), fire, *waiting("queue")]) == [0]


@given(
    st.lists(
        st.builds(
            WaitingMessage,
            id=st.integers(),
            kind=st.sampled_from(get_args(InboxKind)),
            mode=st.sampled_from(BUSY_MODES),
            received_at=st.integers(0, 60 * SECOND),
            person_id=st.sampled_from((None, 1, 2)),
        ),
        max_size=8,
    )
)
@settings(max_examples=100)
def test_a_turn_takes_the_oldest_items_or_waits_until_a_known_time(items: list[WaitingMessage]) -> None:
    claim = claimable(items, now=0)
    assert list(claim.items) == items[: len(claim.items)]
    assert bool(items) == (bool(claim.items) != (claim.wait_until is not None))
    later = claimable(items, now=100 * SECOND)
    assert bool(later.items) == bool(items)
