"""Decide whether a new message stops the running turn, and which waiting items one turn takes."""

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Final, Literal, get_args

from keryx.clock import SECOND, Micros
from keryx.core.turns.rules.inbox import InboxKind
from keryx.core.values.turn_states import StepEffect
from keryx.values import dataclass

BusyMode = Literal["queue", "steer", "interrupt", "collect", "rollback"]
BUSY_MODES: Final[tuple[BusyMode, ...]] = get_args(BusyMode)

COLLECT_QUIET: Final[Micros] = 3 * SECOND
COLLECT_MAX: Final[Micros] = 30 * SECOND

ROLLBACK_REFUSED: Final = (
    "The running turn has already done things that cannot be undone, so it was stopped, not rolled back."
)

BARE_OVERRIDE: Final = (
    "Write your message behind !{mode}, like: !{mode} and in German, please. Nothing was sent."
)

_OVERRIDE: Final = re.compile(r"\s*!(stop|queue|steer|interrupt|collect|rollback)(?:\s+|$)", re.IGNORECASE)
_MODE_WORDS: Final[dict[str, BusyMode]] = {mode: mode for mode in BUSY_MODES} | {"stop": "interrupt"}


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingMessage:
    """A ready inbox item, with the fields that the rule needs."""

    id: int
    kind: InboxKind
    mode: BusyMode
    received_at: Micros
    person_id: int | None = None
    """The author."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The items that one turn takes, oldest first; if it takes none yet, ``wait_until`` is when to ask again."""

    items: tuple[WaitingMessage, ...] = ()
    wait_until: Micros | None = None


def split_override(text: str) -> tuple[BusyMode | None, str]:
    """Return the mode that a message asks for (``!stop …``, ``!steer …``), or None, and the rest of its text."""
    match = _OVERRIDE.match(text)
    if match is None:
        return None, text
    return _MODE_WORDS[match[1].lower()], text[match.end() :]


def stops_turn(mode: BusyMode) -> bool:
    """Return whether a new message in this mode stops the running turn."""
    return mode in ("interrupt", "rollback")


def rollback_allowed(effects: Iterable[StepEffect]) -> bool:
    """Return whether a turn with these recorded steps can be dropped as if it had never run."""
    return all(effect == "pure" for effect in effects)


def collect_ready_at(*, first_at: Micros, last_at: Micros) -> Micros:
    """Return when collected messages become one turn: after a pause, but not later than the maximum."""
    return min(last_at + COLLECT_QUIET, first_at + COLLECT_MAX)


def claimable(waiting: Sequence[WaitingMessage], *, now: Micros) -> Claim:
    """Return which of a session's ready items (oldest first) its next turn takes.

    The oldest item decides. A queued item goes alone, or with the steering items right behind it, which would join
    the turn at once. A collected item goes with the collected items behind it, after their pause. An interruption
    takes all waiting messages. Only messages are combined: a fire, an exit or an answer gets its own turn.

    Only messages of one person are combined: a turn has that person's tools, and another person's words must not use
    them. A turn for several people with the tools that all of them may use is no alternative: a guest's message would
    take tools away from the other authors.
    """
    if not waiting:
        return Claim()
    head = waiting[0]
    if head.kind != "message":
        return Claim(items=(head,))
    own = tuple(takewhile(lambda item: (item.kind, item.person_id) == ("message", head.person_id), waiting))
    if any(stops_turn(item.mode) for item in own):
        return Claim(items=own)
    if head.mode == "collect":
        together = tuple(takewhile(lambda item: item.mode == "collect", own))
        ready_at = collect_ready_at(first_at=head.received_at, last_at=together[-1].received_at)
        # Another item behind the collected ones ends the pause: they must not delay it.
        if now < ready_at and len(together) == len(waiting):
            return Claim(wait_until=ready_at)
        return Claim(items=together)
    return Claim(items=(head, *takewhile(lambda item: item.mode == "steer", own[1:])))
