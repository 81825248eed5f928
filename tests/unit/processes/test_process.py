"""Background processes: pinning, waits, kept output, notices."""

import math
from typing import Any

import pytest

from keryx.clock import HOUR, MINUTE
from keryx.core.processes.rules import (
    NoticePolicy,
    clamp_wait,
    output_kept,
)
from keryx.errors import InvalidValue


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
def test_a_clamped_wait_is_marked(asked: float, wait: tuple[float, bool]) -> None:
    assert clamp_wait(asked) == wait


def test_the_maximum_wait_is_a_parameter() -> None:
    assert clamp_wait(9, seconds_max=5) == (5, True)


def test_output_is_kept_for_thirty_minutes_after_the_end() -> None:
    assert output_kept(ended_at=None, now=0)
    assert output_kept(ended_at=0, now=30 * MINUTE - 1)
    assert not output_kept(ended_at=0, now=30 * MINUTE)


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
def test_an_invalid_notice_policy_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        NoticePolicy(**wrong)
