"""The states and purposes of turns, and the effects and states of tool calls."""

from typing import Final, Literal, NewType, get_args

TurnId = NewType("TurnId", int)

TurnState = Literal["running", "waiting", "finished", "failed", "stopped", "lost"]
TurnPurpose = Literal["reply", "flush", "title", "compress", "schedule", "process"]
StepEffect = Literal["pure", "idempotent", "once", "ask"]
StepState = Literal["called", "started", "done", "unknown"]

TURN_STATES: Final[tuple[TurnState, ...]] = get_args(TurnState)
TURN_PURPOSES: Final[tuple[TurnPurpose, ...]] = get_args(TurnPurpose)
STEP_EFFECTS: Final[tuple[StepEffect, ...]] = get_args(StepEffect)
