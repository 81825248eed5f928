"""What comes in: a message before it is accepted, and the states and fates of the inbox item it becomes.

Every accepted item ends with exactly one fate; it is never silently gone.
"""

from typing import Final, Literal, get_args

from keryx.clock import Micros
from keryx.domain.part import Part
from keryx.domain.source import Source, check_id, check_id_length
from keryx.errors import InvalidValue
from keryx.values import dataclass

InboxKind = Literal["message", "command", "schedule", "process", "approval", "agent"]
InboxState = Literal["ready", "claimed", "done", "dead"]
Fate = Literal["answered", "merged", "cancelled", "failed", "command"]

INBOX_KINDS: Final[tuple[InboxKind, ...]] = get_args(InboxKind)
INBOX_STATES: Final[tuple[InboxState, ...]] = get_args(InboxState)
FATES: Final[tuple[Fate, ...]] = get_args(Fate)

ATTEMPTS_MAX: Final = 3
"""How often a claimed item goes back to ready after its turn was lost, before it fails visibly."""

FLUSH_PLATFORM: Final = "flush"
"""Where the refs of Keryx's own requests to flush memory are unique; such an item is no message of anybody."""
COMPRESS_PLATFORM: Final = "compress"
"""The same of a person's requests to summarise, which stand in no transcript."""

TITLE_PLATFORM: Final = "title"
"""The same for Keryx's own requests for a title."""

_NEXT_STATES: Final[dict[InboxState, frozenset[InboxState]]] = {
    # A command is done in the transaction that accepts it; a waiting message can be cancelled.
    "ready": frozenset({"claimed", "done", "dead"}),
    # Back to ready when the holder was lost before the turn had any effect.
    "claimed": frozenset({"ready", "done", "dead"}),
    "done": frozenset(),
    "dead": frozenset(),
}

_FATES: Final[dict[InboxState, frozenset[Fate]]] = {
    "ready": frozenset(),
    "claimed": frozenset(),
    "done": frozenset({"answered", "merged", "cancelled", "command"}),
    "dead": frozenset({"failed"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """A message as a platform gave it, before acceptance; ``ref`` is the id that a redelivery repeats."""

    source: Source
    ref: str
    parts: tuple[Part, ...]
    sent_at: Micros | None = None

    def __post_init__(self) -> None:
        if not self.ref:
            raise InvalidValue(
                "an inbound message needs a ref: without it a redelivery would be answered twice"
            )
        check_id("ref", self.ref)
        check_id_length("ref", self.ref)
        self.source.check_lengths()
        if not self.parts:
            raise InvalidValue(f"inbound message {self.ref!r} says nothing: give it at least one part")


def item_may_become(state: InboxState, new: InboxState) -> bool:
    """Say whether an inbox item in ``state`` may go to ``new``."""
    return new in _NEXT_STATES[state]


def fate_fits(state: InboxState, fate: Fate | None) -> bool:
    """Say whether an item in ``state`` may have ``fate``; one that has not ended has none."""
    allowed = _FATES[state]
    return fate in allowed if allowed else fate is None


def may_try_again(attempts: int) -> bool:
    """Say whether an item claimed ``attempts`` times may be made ready once more."""
    return attempts < ATTEMPTS_MAX
