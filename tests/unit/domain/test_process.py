"""Background processes: pinning, waiting, keeping, notices."""

import math
from typing import Any, get_args

import pytest

from keryx.clock import HOUR, MINUTE
from keryx.domain.process import NoticePolicy, ProcessState, clamp_wait, may_become, output_kept, pins_session
from keryx.errors import InvalidValue


def test_a_live_process_pins_its_session_while_younger_than_a_day() -> None:
    assert pins_session(started_at=0, now=24 * HOUR - 1)
    assert not pins_session(started_at=0, now=24 * HOUR)
    assert not pins_session(started_at=0, now=0, pin_hours=0)


@pytest.mark.parametrize(
    ("asked", "wait"),
    [
        (0, (0.0, False)),
        (2.5, (2.5, False)),
        (180, (180.0, False)),
        (181, (180.0, True)),
        (math.inf, (180.0, True)),
        (-1, (0.0, True)),
        (math.nan, (0.0, True)),
    ],
)
def test_a_wait_is_clamped_and_says_so(asked: float, wait: tuple[float, bool]) -> None:
    assert clamp_wait(asked) == wait


def test_the_longest_wait_can_be_given() -> None:
    assert clamp_wait(9, seconds_max=5) == (5, True)


def test_a_finished_process_is_kept_thirty_minutes_from_its_end() -> None:
    assert output_kept(ended_at=None, now=0)
    assert output_kept(ended_at=0, now=30 * MINUTE - 1)
    assert not output_kept(ended_at=0, now=30 * MINUTE)


def test_a_process_leaves_running_once_and_for_good() -> None:
    states = get_args(ProcessState)
    moves = {(old, new) for old in states for new in states if may_become(old, new)}
    assert moves == {("running", "exited"), ("running", "killed"), ("running", "lost")}


def test_a_watched_pattern_is_literal_text() -> None:
    policy = NoticePolicy(patterns=("ready (1)", "error"))
    assert policy.patterns_in("an error, then ready (1)") == ["ready (1)", "error"]
    assert policy.patterns_in("error") == ["error"]
    assert policy.patterns_in("ready 1") == []


def test_a_regular_notice_is_due_after_its_minutes_and_never_without_them() -> None:
    policy = NoticePolicy(every_minutes=5)
    assert not policy.periodic_due(last_notice_at=0, now=5 * MINUTE - 1)
    assert policy.periodic_due(last_notice_at=0, now=5 * MINUTE)
    assert not NoticePolicy().periodic_due(last_notice_at=0, now=HOUR)


@pytest.mark.parametrize(
    "wrong",
    [{"patterns": ("",)}, {"patterns": ("x" * 201,)}, {"patterns": ("x",) * 11}, {"every_minutes": 0}],
)
def test_a_notice_policy_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        NoticePolicy(**wrong)
