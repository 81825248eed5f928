"""Where faults can happen in a simulated world, and which faults are planned there."""

from collections.abc import Callable
from typing import Final, Literal, NamedTuple, get_args

from keryx.errors import StoreUnavailable

How = Literal["kill", "freeze", "exception"]
HOWS: Final[tuple[How, ...]] = get_args(How)


class FaultPoint(NamedTuple):
    """A place where a fault may happen: its number in the order of the run, its process, and its call."""

    no: int
    process: str
    what: str


class PlannedFault(NamedTuple):
    """A fault; with ``statement``, right before that statement of the transaction."""

    how: How
    statement: int | None = None


FaultPlan = Callable[[FaultPoint], PlannedFault | None]


def make_error(what: str) -> Exception:
    """Return the error of a call that is planned to fail."""
    if what in ("read", "write"):
        return StoreUnavailable("planned: the store is away for a moment")
    if what in ("receive", "acknowledge", "send", "edit"):
        return ConnectionResetError("planned: the platform hung up")
    return RuntimeError(f"planned: {what}")
