"""The points of a simulated world where faults may happen, and the faults planned there."""

from collections.abc import Callable
from typing import Final, Literal, NamedTuple, get_args

from keryx.errors import StoreUnavailable

FaultKind = Literal["kill", "freeze", "exception"]
FAULT_KINDS: Final[tuple[FaultKind, ...]] = get_args(FaultKind)


class FaultPoint(NamedTuple):
    """A call that may fail: its number in the run, its process, and the name of the call."""

    no: int
    process: str
    what: str


class PlannedFault(NamedTuple):
    """A fault; with ``statement``, right before that statement of the transaction."""

    kind: FaultKind
    statement: int | None = None


FaultPlan = Callable[[FaultPoint], PlannedFault | None]


def make_error(what: str) -> Exception:
    """Return the error of a call that is planned to fail."""
    if what in ("read", "write"):
        return StoreUnavailable("planned: the store is unavailable for a moment")
    if what in ("receive", "acknowledge", "send", "edit"):
        return ConnectionResetError("planned: the platform hung up")
    return RuntimeError(f"planned: {what}")
