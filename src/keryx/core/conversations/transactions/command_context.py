"""The context and the outcome of a command.

The whole chat may read a reply, so a handler reveals nothing that the chat's audience may not see.
"""

from collections.abc import Callable
from typing import Literal, Protocol

from keryx.clock import DAY, HOUR, MINUTE, Micros
from keryx.config import Settings
from keryx.core.conversations.rules.command import Command, ParsedCommand, UnknownCommand
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.session_key import SessionKey
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.transactions.session_guard import Actor, GiveWay
from keryx.core.conversations.transactions.switch_session import Surface
from keryx.core.people.rules.person import Person
from keryx.core.values.graphemes import cut
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.values import dataclass

AnswerKind = Literal["search", "platforms", "compress"]
NAME_LENGTH = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """The author and the source of a command, and the current session there."""

    session_id: SessionId
    key: SessionKey
    person: Person
    source: Source
    settings: Settings
    ids: Ids
    commands: "Commands"
    give_way: GiveWay

    @property
    def actor(self) -> Actor:
        """The author as the person who changes the session."""
        return Actor(person_id=self.person.id, give_way=self.give_way)

    @property
    def surface(self) -> Surface:
        """The surface whose session the command may switch."""
        return Surface(key=self.key, source=self.source, person=self.person)


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedsAnswer:
    """A running program must answer the command, because the answer needs the index, the gateway or a model.

    ``search``: search for ``argument`` in the sessions of the chat's audience. ``platforms``: list the connected
    platforms. ``compress``: show which messages a summary would cover.
    """

    kind: AnswerKind
    argument: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutcome:
    """The reply, if any, and the current session after the command."""

    session_id: SessionId
    reply: str | None = None
    needs_answer: NeedsAnswer | None = None
    is_declined: bool = False
    """Whether the command changed nothing; the reply says why."""
    queued: int | None = None
    """The inbox item whose answer is the reply to the command."""


Handler = Callable[[Tx, CommandContext, str], CommandOutcome]
"""Run a command in the transaction that accepts it. The text is the argument."""


class Commands(Protocol):
    """The interface of the table of commands."""

    @property
    def commands(self) -> tuple[Command, ...]:
        """Every command, in the order of the help."""

    def parse(self, text: str) -> ParsedCommand | UnknownCommand | None:
        """Return the command in ``text``, or None for an ordinary message."""

    def find(self, name: str) -> Command | None:
        """Return the command with this name or alias."""

    def nearest(self, name: str) -> tuple[str, ...]:
        """Return up to three names of commands like ``name``."""

    def run(self, tx: Tx, parsed: ParsedCommand, *, context: CommandContext) -> CommandOutcome:
        """Run a command, or return a reply that says why not."""


def decline(context: CommandContext, reply: str) -> CommandOutcome:
    """Return the outcome of a command that changed nothing."""
    return CommandOutcome(session_id=context.session_id, reply=reply, is_declined=True)


def say(context: CommandContext, reply: str, *, session_id: SessionId | None = None) -> CommandOutcome:
    """Return an outcome with a reply; ``session_id`` is the current session if the command switched it."""
    return CommandOutcome(session_id=session_id or context.session_id, reply=reply)


def ask_surface(context: CommandContext, kind: AnswerKind, argument: str) -> CommandOutcome:
    """Return an outcome that a running program must answer."""
    return CommandOutcome(
        session_id=context.session_id, needs_answer=NeedsAnswer(kind=kind, argument=argument)
    )


def shortly(text: str) -> str:
    """Return a text as one short line."""
    return cut(" ".join(text.split()), NAME_LENGTH)


def span(micros: Micros) -> str:
    """Return a duration in its largest unit, like ``3 h``."""
    for unit, word in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if micros >= unit:
            return f"{micros // unit} {word}"
    return "less than a minute"


def ago(then: Micros, *, now: Micros) -> str:
    """Return the time since ``then``, like ``3 h ago``."""
    return f"{span(max(0, now - then))} ago"


def messages(count: int) -> str:
    """Return a number of messages, like ``2 messages``."""
    return "1 message" if count == 1 else f"{count} messages"


def number_of(text: str) -> int | None:
    """Return the number in a text, or None."""
    # The databases refuse longer numbers.
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None
