"""Turns and steps: legal changes, people's words, and what a crash leaves."""

import pytest

from keryx.domain.turn import (
    STEP_EFFECTS,
    STEP_STATES,
    TURN_PURPOSES,
    TURN_STATES,
    CrashVerdict,
    StepEffect,
    after_crash,
    moves_last_activity,
    must_record_start,
    parse_effect,
    step_may_become,
    turn_ended,
    turn_may_become,
    turn_word,
)
from keryx.errors import InvalidValue


def test_a_turn_runs_waits_and_ends_and_stays_ended() -> None:
    legal = {(old, new) for old in TURN_STATES for new in TURN_STATES if turn_may_become(old, new)}
    assert legal == {
        ("running", "waiting"),
        ("running", "finished"),
        ("running", "failed"),
        ("running", "stopped"),
        ("running", "lost"),
        ("waiting", "running"),
        ("waiting", "failed"),
        ("waiting", "stopped"),
    }
    assert [state for state in TURN_STATES if turn_ended(state)] == ["finished", "failed", "stopped", "lost"]


def test_a_step_never_leaves_done_or_unknown() -> None:
    legal = {(old, new) for old in STEP_STATES for new in STEP_STATES if step_may_become(old, new)}
    assert legal == {
        ("called", "started"),
        ("called", "done"),
        ("started", "started"),
        ("started", "done"),
        ("started", "unknown"),
    }


def test_people_see_words_of_their_own() -> None:
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
    assert [purpose for purpose in TURN_PURPOSES if not moves_last_activity(purpose)] == [
        "flush",
        "title",
        "compress",
    ]


def test_an_effect_is_read_from_its_name() -> None:
    assert [parse_effect(name) for name in ("pure", "idempotent", "once", "ask")] == list(STEP_EFFECTS)
    with pytest.raises(InvalidValue, match="use one of pure, idempotent, once, ask"):
        parse_effect("twice")
