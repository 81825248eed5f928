"""A turn: one run of the agent on a session, and the steps (tool calls) it made.

A turn that has ended never runs again. What happens to its unfinished steps after a crash is decided here.
"""

from typing import Final, Literal, NewType, get_args

from keryx.errors import InvalidValue

TurnId = NewType("TurnId", int)

TurnState = Literal["running", "waiting", "finished", "failed", "stopped", "lost"]
TurnPurpose = Literal["reply", "flush", "title", "compress", "schedule", "process"]
StepEffect = Literal["pure", "idempotent", "once", "ask"]
StepState = Literal["called", "started", "done", "unknown"]
CrashVerdict = Literal["rerun", "unknown", "done"]

TURN_STATES: Final[tuple[TurnState, ...]] = get_args(TurnState)
TURN_PURPOSES: Final[tuple[TurnPurpose, ...]] = get_args(TurnPurpose)
STEP_EFFECTS: Final[tuple[StepEffect, ...]] = get_args(StepEffect)
STEP_STATES: Final[tuple[StepState, ...]] = get_args(StepState)

_NEXT_TURN_STATES: Final[dict[TurnState, frozenset[TurnState]]] = {
    "running": frozenset({"waiting", "finished", "failed", "stopped", "lost"}),
    # A waiting turn holds no lease, so it cannot be lost; its question can expire, which fails it.
    "waiting": frozenset({"running", "failed", "stopped"}),
    "finished": frozenset(),
    "failed": frozenset(),
    "stopped": frozenset(),
    "lost": frozenset(),
}

_NEXT_STEP_STATES: Final[dict[StepState, frozenset[StepState]]] = {
    # A pure call has no committed start; a refused or stopped one gets its result without ever starting.
    "called": frozenset({"started", "done"}),
    # Started again after a crash is still started: idempotent calls may run twice.
    "started": frozenset({"started", "done", "unknown"}),
    "done": frozenset(),
    "unknown": frozenset(),
}

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
"""The result text a ``once`` call gets when a crash hid its outcome."""


def turn_may_become(state: TurnState, new: TurnState) -> bool:
    """Say whether a turn in ``state`` may go to ``new``."""
    return new in _NEXT_TURN_STATES[state]


def turn_ended(state: TurnState) -> bool:
    """Say whether a turn in ``state`` is over for good."""
    return not _NEXT_TURN_STATES[state]


def step_may_become(state: StepState, new: StepState) -> bool:
    """Say whether a step in ``state`` may go to ``new``."""
    return new in _NEXT_STEP_STATES[state]


def turn_word(state: TurnState) -> str:
    """Return the word people see for a turn's state."""
    return _WORDS[state]


def moves_last_activity(purpose: TurnPurpose) -> bool:
    """Say whether a turn with this purpose counts as activity of the session, which postpones its reset."""
    return purpose in ("reply", "schedule", "process")


def gives_way(purpose: TurnPurpose) -> bool:
    """Say whether a turn with this purpose is Keryx's own, and ends for whatever anybody wants of the session."""
    return purpose in ("flush", "title")


def must_record_start(effect: StepEffect) -> bool:
    """Say whether the start of a call must be committed before the call runs."""
    return effect != "pure"


def after_crash(effect: StepEffect, *, started: bool, has_result: bool) -> CrashVerdict:
    """Return what to do with a step found after a crash.

    ``done``: its result is there. ``rerun``: it may be run, or run again. ``unknown``: it started, may have
    run and must not run again; it gets ``UNKNOWN_RESULT``.
    """
    if has_result:
        return "done"
    if started and effect in ("once", "ask"):
        # A person approved one run of an ``ask`` call, not two.
        return "unknown"
    return "rerun"


def parse_effect(text: str) -> StepEffect:
    """Return the effect named by ``text``; raises InvalidValue for anything else."""
    for effect in STEP_EFFECTS:
        if effect == text:
            return effect
    raise InvalidValue(f"effect {text!r} is not known; use one of {', '.join(STEP_EFFECTS)}")
