"""The platform's own records: messages sent to Keryx, messages that Keryx accepted, and messages shown to people.

Only the double writes them, so that Keryx's view can be compared with what happened. A message counts as shown when
its id first arrives. A repeated id shows nothing, because the platform's ids are idempotency keys.
"""

import time
from collections import Counter
from dataclasses import field
from typing import Literal, TypeAlias

from keryx.values import dataclass

MessageKind: TypeAlias = Literal["message", "steer", "stop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    """A message from a user; ``no`` is its place in its chat."""

    id: str
    chat: str
    no: int
    kind: MessageKind
    token: str = ""
    """The token that an answer quotes; a ``/stop`` has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMessage:
    """A message shown to people, and the gateway that sent it."""

    id: str
    chat: str
    text: str
    reply_to: str | None
    node: str
    at: float

    @property
    def key(self) -> str:
        """The key of the reply that this message is a piece of."""
        return self.id.rpartition("-")[0]

    @property
    def piece(self) -> int:
        """The number of the piece in its reply, from 0; -1 if the id has none."""
        number = self.id.rpartition("-")[2]
        return int(number) if number.isdecimal() else -1


@dataclass
class PlatformRecords:
    """All records of the double; times are from this machine's monotonic clock."""

    canaries: dict[str, str] = field(default_factory=dict)
    """The canaries by chat."""
    messages: dict[str, UserMessage] = field(default_factory=dict)
    accepted: dict[str, float] = field(default_factory=dict)
    """The time of the first 2xx response for each message."""
    shown: list[ShownMessage] = field(default_factory=list)
    """The shown messages, in order."""
    counts: Counter[str] = field(default_factory=Counter)
    """How often the double injected each fault, by name."""
    violations: list[str] = field(default_factory=list)
    """Calls that broke the platform's rules."""
    _seen: set[str] = field(default_factory=set)
    _replied: Counter[str] = field(default_factory=Counter)

    def note_accepted(self, message: UserMessage) -> None:
        """Record that Keryx accepted a message."""
        self.accepted.setdefault(message.id, time.monotonic())

    def note_shown(self, shown: ShownMessage) -> bool:
        """Record a shown message; return False if it was already shown."""
        if shown.id in self._seen:
            self.counts["repeated under one id"] += 1
            return False
        self._seen.add(shown.id)
        self.shown.append(shown)
        message = self.messages.get(shown.reply_to or "")
        if message is not None and message.kind != "stop":
            self._replied[message.chat] = max(message.no, self._replied[message.chat])
        return True

    def count_open(self, chat: str) -> int:
        """Return the number of questions in a chat after the last question with a reply."""
        last = self._replied[chat]
        return sum(
            each.chat == chat and each.no > last and each.kind != "stop" for each in self.messages.values()
        )
