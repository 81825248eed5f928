"""Events in the feed. An event holds ids and never the words of a message.

``number`` is gapless within a session (or within a person's own stream), so a client applies only the next number,
fetches a gap and drops a repeat. ``Position`` is an opaque cursor over all events; positions rise with gaps.
"""

import re
from typing import Final, Literal, Self

from keryx.clock import Micros
from keryx.errors import InvalidValue
from keryx.values import dataclass

EventKind = Literal[
    "session.opened",
    "session.closed",
    "session.changed",
    "session.purged",
    "message",
    "branch",
    "cover",
    "inbox",
    "turn",
    "step",
    "delivery",
    "approval",
    "rule",
    "process",
    "fire",
    "schedule",
    "access",
    "project",
    "draft",
    "read",
    "memory",
    "pairing",
    "home",
]


_POSITION: Final = re.compile(r"([0-9]{1,19})\.([0-9]{1,19})")
_NUMBER_MAX: Final = 2**63 - 1
"""The greatest number that a database stores."""


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in the feed: PostgreSQL orders by transaction first, SQLite by row only."""

    xid: int = 0
    id: int = 0

    def __str__(self) -> str:
        """Return the opaque form for clients."""
        return f"{self.xid}.{self.id}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the position that ``str`` wrote, or raise ``InvalidValue``."""
        found = _POSITION.fullmatch(text)
        numbers = [int(number) for number in found.groups()] if found else []
        if not numbers or max(numbers) > _NUMBER_MAX:
            raise InvalidValue(
                f"feed position {text[:40]!r}: use one that a feed answer gave, or start without one"
            )
        return cls(*numbers)


START: Final = Position()


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event; ``subject`` is the id or number of the object that changed, as ``kind`` says."""

    position: Position
    session_id: str | None
    person_id: int | None
    number: int
    kind: EventKind
    subject: int | None
    at: Micros
