"""Turns and steps: legal changes, words for people, and the decision after a crash."""

import pytest

from keryx.core.turns.rules.turn import (
    CrashVerdict,
    after_crash,
    counts_as_activity,
    must_record_start,
    turn_ended,
    turn_word,
)
from keryx.core.values.turn_states import STEP_EFFECTS, TURN_PURPOSES, TURN_STATES, StepEffect


def test_a_turn_runs_waits_and_ends_and_stays_ended() -> None:
    assert [state for state in TURN_STATES if turn_ended(state)] == ["finished", "failed", "stopped", "lost"]


def test_every_state_has_a_word_for_people() -> None:
    assert [turn_word(state) for state in TURN_STATES] == [
        "working",
        "waiting for you",
        "done",
        "failed",
        "stopped",
        "interrupted",
    ]


@pytest.mark.parametrize(
    ("effect", "started", "has_result", "verdict"),
    [
        ("pure", False, False, "rerun"),
        ("pure", True, False, "rerun"),
        ("idempotent", True, False, "rerun"),
        ("once", False, False, "rerun"),
        ("once", True, False, "unknown"),
        ("ask", False, False, "rerun"),
        ("ask", True, False, "unknown"),
        ("once", True, True, "done"),
        ("pure", False, True, "done"),
    ],
)
def test_after_a_crash_a_started_once_call_never_runs_again(
    effect: StepEffect, *, started: bool, has_result: bool, verdict: CrashVerdict
) -> None:
    assert after_crash(effect, started=started, has_result=has_result) == verdict


def test_only_pure_calls_start_without_a_record() -> None:
    assert [effect for effect in STEP_EFFECTS if not must_record_start(effect)] == ["pure"]


def test_silent_turns_do_not_postpone_a_reset() -> None:
    assert [purpose for purpose in TURN_PURPOSES if not counts_as_activity(purpose)] == [
        "flush",
        "title",
        "compress",
    ]
