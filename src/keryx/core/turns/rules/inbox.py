"""A message before it is accepted, and the states and fates of the inbox item it becomes.

Every accepted item ends with exactly one fate; none disappears silently.
"""

from typing import Final, Literal

from keryx.clock import Micros
from keryx.core.conversations.rules.part import Part
from keryx.core.conversations.rules.source import Source, check_id, check_id_length
from keryx.errors import InvalidValue
from keryx.values import dataclass

InboxKind = Literal["message", "command", "schedule", "process", "approval", "agent"]
InboxState = Literal["ready", "claimed", "done", "dead"]
ItemPurpose = Literal["answer", "rerun", "task", "compress", "flush", "title"]
"""What an item asks for: an answer to what it says, another answer to a message of the transcript (``rerun``), the
result of a delegated task, a summary, or (Keryx's own requests) notes for memory and a title."""
Fate = Literal["answered", "merged", "cancelled", "failed", "command"]

OWN_PURPOSES: Final[frozenset[ItemPurpose]] = frozenset({"flush", "title"})
"""Requests of Keryx itself. They give way to everything else, and no person waits for them."""

ATTEMPTS_MAX: Final = 3
"""How often a claimed item goes back to ready after its turn was lost, before it fails visibly."""

NO_PLATFORM: Final = ""
"""The platform of items that Keryx adds itself. No platform has this name, so no message can repeat their refs."""


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
            raise InvalidValue(f"inbound message {self.ref!r} has no parts: give it at least one")


def may_try_again(attempts: int) -> bool:
    """Return whether an item that was claimed ``attempts`` times may be retried."""
    return attempts < ATTEMPTS_MAX
