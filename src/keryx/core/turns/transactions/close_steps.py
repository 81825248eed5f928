"""Give open calls a result that says why there is no real one, so that every call has exactly one.

A call whose start was committed may have run: its result says that this is not known, and never that it did not.
"""

from keryx.core.conversations.rules.message import NewMessage, ToolResultPart
from keryx.core.conversations.transactions.append_message import append_held
from keryx.core.turns.rules.lease import TurnLease
from keryx.core.turns.rules.turn import UNKNOWN_RESULT, after_crash
from keryx.core.turns.tables import turns
from keryx.core.values.turn_states import StepState
from keryx.store.database import Tx

NOT_RUN = "This was not run: the turn ended before it."
NO_RESULT = (
    "It is unknown whether this ran to its end: the turn ended after it began and before its result came."
)


def close_steps(tx: Tx, held: TurnLease) -> None:
    """Close every open call of a turn that ends."""
    for step in turns.list_steps(tx, held.turn_id):
        if step.state == "called":
            _close(tx, held, step, output=NOT_RUN, state="done")
        elif step.state == "started":
            _close(tx, held, step, output=NO_RESULT, state="unknown")


def close_unknown_steps(tx: Tx, held: TurnLease) -> None:
    """Close the calls of a turn that may have run and must not run again; the others are left for the next turn."""
    for step in turns.list_steps(tx, held.turn_id):
        verdict = after_crash(step.effect, started=step.starts > 0, has_result=step.result_seq is not None)
        if verdict == "unknown":
            _close(tx, held, step, output=UNKNOWN_RESULT, state="unknown")


def _close(tx: Tx, held: TurnLease, step: turns.Step, *, output: str, state: StepState) -> None:
    result = ToolResultPart(call_id=step.call_id, name=step.name, output=output, is_error=True)
    appended = append_held(tx, held, NewMessage(role="tool", parts=(result,)))
    turns.end_step(tx, turn_id=step.turn_id, call_id=step.call_id, state=state, result_seq=appended.seq)
