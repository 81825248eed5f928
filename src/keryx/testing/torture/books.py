"""The platform's own books: what was said to Keryx, what Keryx took, and what people were shown.

Kept by the double alone, so that what Keryx believes can be compared with what happened. A message counts as shown
when it is first taken under its id; the same id again shows nothing, as the platform's ids are idempotency keys.
"""

import time
from collections import Counter
from dataclasses import field
from typing import Literal, TypeAlias

from keryx.values import dataclass

Kind: TypeAlias = Literal["message", "steer", "stop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A message somebody sent; ``no`` is its place in its chat."""

    id: str
    chat: str
    no: int
    kind: Kind
    token: str = ""
    """What an answer quotes; a ``/stop`` has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A message people saw, and which gateway brought it."""

    id: str
    chat: str
    text: str
    reply_to: str | None
    node: str
    at: float

    @property
    def key(self) -> str:
        """Which reply it is a piece of."""
        return self.id.rpartition("-")[0]

    @property
    def piece(self) -> int:
        """Which piece of its reply it is, from 0; -1 where the id does not say."""
        number = self.id.rpartition("-")[2]
        return int(number) if number.isdecimal() else -1


@dataclass
class Books:
    """Everything the double wrote down; times are of this machine's monotonic clock."""

    canaries: dict[str, str] = field(default_factory=dict)
    """By chat."""
    asked: dict[str, Asked] = field(default_factory=dict)
    taken: dict[str, float] = field(default_factory=dict)
    """When each message was first answered with 2xx."""
    shown: list[Shown] = field(default_factory=list)
    """In the order people saw them."""
    counts: Counter[str] = field(default_factory=Counter)
    """What the double did to the gateways, by a word for it."""
    wrong: list[str] = field(default_factory=list)
    """Calls that broke the rules of the platform itself."""
    _seen: set[str] = field(default_factory=set)
    _replied: Counter[str] = field(default_factory=Counter)

    def note_taken(self, asked: Asked) -> None:
        """Write down that a message was taken."""
        self.taken.setdefault(asked.id, time.monotonic())

    def note_shown(self, shown: Shown) -> bool:
        """Write down what people see; False for what they have seen already."""
        if shown.id in self._seen:
            self.counts["repeated under one id"] += 1
            return False
        self._seen.add(shown.id)
        self.shown.append(shown)
        asked = self.asked.get(shown.reply_to or "")
        if asked is not None and asked.kind != "stop":
            self._replied[asked.chat] = max(asked.no, self._replied[asked.chat])
        return True

    def count_open(self, chat: str) -> int:
        """Count what a chat asked after the last question it got a reply to."""
        last = self._replied[chat]
        return sum(
            each.chat == chat and each.no > last and each.kind != "stop" for each in self.asked.values()
        )
