"""What a message does that arrives while a turn runs, and which waiting items one turn takes.

Whatever the mode, the message is stored before anything here is asked, so every answer may be "wait".
"""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import Final, Literal, get_args

from keryx.clock import SECOND, Micros
from keryx.domain.inbox import InboxKind
from keryx.domain.turn import StepEffect
from keryx.values import dataclass

BusyMode = Literal["queue", "steer", "interrupt", "collect", "rollback"]
BUSY_MODES: Final[tuple[BusyMode, ...]] = get_args(BusyMode)

COLLECT_QUIET: Final[Micros] = 3 * SECOND
COLLECT_MAX: Final[Micros] = 30 * SECOND

ArrivalAction = Literal["wait", "steer", "stop", "rollback"]

ROLLBACK_REFUSED: Final = (
    "The running turn has already done things that cannot be taken back, so it was stopped, not rolled back."
)

BARE_OVERRIDE: Final = (
    "!{mode} stands before what you say, like: !{mode} and in German, please. Nothing was sent."
)

_OVERRIDE: Final = re.compile(r"\s*!(stop|queue|steer|interrupt|collect|rollback)(?:\s+|$)", re.IGNORECASE)
_MODE_WORDS: Final[dict[str, BusyMode]] = {mode: mode for mode in BUSY_MODES} | {"stop": "interrupt"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A ready inbox item, as much of it as the rule needs."""

    id: int
    kind: InboxKind
    mode: BusyMode
    received_at: Micros
    person_id: int | None = None
    """Who said it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The items one turn takes, oldest first; if none yet, ``wait_until`` says when to ask again."""

    items: tuple[Waiting, ...] = ()
    wait_until: Micros | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """What happens to the running turn, and what the sender is told about it, if anything."""

    action: ArrivalAction
    notice: str | None = None


def split_override(text: str) -> tuple[BusyMode | None, str]:
    """Return the mode a message asks for (``!stop …``, ``!steer …``), or None, and the rest of its text."""
    match = _OVERRIDE.match(text)
    if match is None:
        return None, text
    return _MODE_WORDS[match[1].lower()], text[match.end() :]


def on_arrival(mode: BusyMode, *, turn_running: bool, effects: Iterable[StepEffect] = ()) -> Arrival:
    """Decide what a new message does to the session's running turn, whose recorded steps have ``effects``."""
    if not turn_running or mode in ("queue", "collect"):
        return Arrival(action="wait")
    if mode == "steer":
        return Arrival(action="steer")
    if mode == "interrupt":
        return Arrival(action="stop")
    if rollback_allowed(effects):
        return Arrival(action="rollback")
    return Arrival(action="stop", notice=ROLLBACK_REFUSED)


def rollback_allowed(effects: Iterable[StepEffect]) -> bool:
    """Say whether a turn with these recorded steps can be dropped as if it had never run."""
    return all(effect == "pure" for effect in effects)


def collect_ready_at(*, first_at: Micros, last_at: Micros) -> Micros:
    """Return when messages being collected become one turn: after a pause, but never later than the maximum."""
    return min(last_at + COLLECT_QUIET, first_at + COLLECT_MAX)


def claimable(waiting: Sequence[Waiting], *, now: Micros) -> Claim:
    """Return which of a session's ready items, oldest first, its next turn takes.

    The oldest decides. Queued, it goes alone, or with the steering right behind it, which would join the turn
    at once. Collected, it goes with those collected after it, when their pause has come. An interruption takes
    all that waits with it. Only messages go together: a fire, an exit or an answer is a turn of its own.

    Only messages of one person go together, too: a turn has its person's tools, and no other's words may use them. One
    turn for several, with what all of them may use, would answer as well, but then a guest's word takes tools from
    whoever speaks beside them.
    """
    if not waiting:
        return Claim()
    head = waiting[0]
    if head.kind != "message":
        return Claim(items=(head,))
    said = _leading(waiting, lambda item: (item.kind, item.person_id) == ("message", head.person_id))
    if any(item.mode in ("interrupt", "rollback") for item in said):
        return Claim(items=said)
    if head.mode == "collect":
        together = _leading(said, lambda item: item.mode == "collect")
        ready_at = collect_ready_at(first_at=head.received_at, last_at=together[-1].received_at)
        # Something else behind them ends the pause: they must not hold it up.
        if now < ready_at and len(together) == len(waiting):
            return Claim(wait_until=ready_at)
        return Claim(items=together)
    return Claim(items=(head, *_leading(said[1:], lambda item: item.mode == "steer")))


def _leading(items: Sequence[Waiting], wanted: Callable[[Waiting], bool]) -> tuple[Waiting, ...]:
    return tuple(takewhile(wanted, items))
