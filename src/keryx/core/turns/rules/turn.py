"""A turn: one run of the agent on a session, with its steps (tool calls).

A turn that has ended never runs again. ``after_crash`` decides about its unfinished steps after a crash.
"""

from typing import Final, Literal

from keryx.core.values.turn_states import StepEffect, TurnPurpose, TurnState

CrashVerdict = Literal["rerun", "unknown", "done"]


_WORDS: Final[dict[TurnState, str]] = {
    "running": "working",
    "waiting": "waiting for you",
    "finished": "done",
    "failed": "failed",
    "stopped": "stopped",
    "lost": "interrupted",
}

UNKNOWN_RESULT: Final = (
    "It is unknown whether this ran: Keryx stopped after the call began and before it ended."
)
"""The result text of a ``once`` call whose outcome is unknown after a crash."""


def turn_ended(state: TurnState) -> bool:
    """Return whether ``state`` is final."""
    return state not in ("running", "waiting")


def turn_word(state: TurnState) -> str:
    """Return the word that people see for a turn's state."""
    return _WORDS[state]


def counts_as_activity(purpose: TurnPurpose) -> bool:
    """Return whether a turn with this purpose counts as activity of the session, which postpones its reset."""
    return purpose in ("reply", "schedule", "process")


def yields_to_others(purpose: TurnPurpose) -> bool:
    """Return whether a turn with this purpose is Keryx's own, and stops when other work arrives for the session."""
    return purpose in ("flush", "title")


def must_record_start(effect: StepEffect) -> bool:
    """Return whether the start of a call must be committed before the call runs."""
    return effect != "pure"


def after_crash(effect: StepEffect, *, started: bool, has_result: bool) -> CrashVerdict:
    """Return what to do with a step after a crash.

    ``done``: the step has a result. ``rerun``: the step may run, or run again. ``unknown``: the step started, may
    have run and must not run again; it gets ``UNKNOWN_RESULT``.
    """
    if has_result:
        return "done"
    if started and effect in ("once", "ask"):
        # A person approved one run of an ``ask`` call, not two.
        return "unknown"
    return "rerun"
