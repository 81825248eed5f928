"""What a command handler is given, and what it gives back.

Everything a handler says may be read by the whole chat, so it speaks only of what was said to that audience.
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
    """Who gave the command, where, and which session that place shows."""

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
        """The person, as the one who changes the session."""
        return Actor(person_id=self.person.id, give_way=self.give_way)

    @property
    def surface(self) -> Surface:
        """The place whose session may be switched."""
        return Surface(key=self.key, source=self.source, person=self.person)


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedsAnswer:
    """The surface has to answer or act: it needs the index, the running gateway or a model.

    ``search``: find ``argument`` in what was said to this chat's audience. ``platforms``: show what is connected.
    ``compress``: show what a summary of the session would stand for.
    """

    kind: AnswerKind
    argument: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutcome:
    """What is said back, if anything, and which session the place shows afterwards."""

    session_id: SessionId
    reply: str | None = None
    needs_answer: NeedsAnswer | None = None
    is_declined: bool = False
    """Whether nothing was done; the reply says why."""
    queued: int | None = None
    """What waits for its turn because of it, whose answer is the command's."""


Handler = Callable[[Tx, CommandContext, str], CommandOutcome]
"""Carry out one command in the transaction that accepted it. The text is what follows the command's name."""


class Commands(Protocol):
    """The table of commands, as the transactions know it."""

    @property
    def commands(self) -> tuple[Command, ...]:
        """Every command, in the order of the help."""

    def parse(self, text: str) -> ParsedCommand | UnknownCommand | None:
        """Return the command that ``text`` is, or None for an ordinary message."""

    def find(self, name: str) -> Command | None:
        """Return the command with this name or alias."""

    def nearest(self, name: str) -> tuple[str, ...]:
        """Return up to three names of commands like ``name``."""

    def run(self, tx: Tx, parsed: ParsedCommand, *, context: CommandContext) -> CommandOutcome:
        """Carry out a command, or say why not."""


def decline(context: CommandContext, reply: str) -> CommandOutcome:
    """Return an outcome that says why nothing was done."""
    return CommandOutcome(session_id=context.session_id, reply=reply, is_declined=True)


def say(context: CommandContext, reply: str, *, session_id: SessionId | None = None) -> CommandOutcome:
    """Return an outcome that says something; the session stays the same unless another is named."""
    return CommandOutcome(session_id=session_id or context.session_id, reply=reply)


def ask_surface(context: CommandContext, kind: AnswerKind, argument: str) -> CommandOutcome:
    """Return an outcome that leaves the rest to the surface."""
    return CommandOutcome(
        session_id=context.session_id, needs_answer=NeedsAnswer(kind=kind, argument=argument)
    )


def shortly(text: str) -> str:
    """Return a name or a text in one short line."""
    return cut(" ".join(text.split()), NAME_LENGTH)


def span(micros: Micros) -> str:
    """Return a length of time in its largest unit, like ``3 h``."""
    for unit, word in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if micros >= unit:
            return f"{micros // unit} {word}"
    return "less than a minute"


def ago(then: Micros, *, now: Micros) -> str:
    """Return how long ago something was."""
    return f"{span(max(0, now - then))} ago"


def messages(count: int) -> str:
    """Return how many messages there are, as people say it."""
    return "1 message" if count == 1 else f"{count} messages"


def number_of(text: str) -> int | None:
    """Return the number that a text is, or None."""
    # Longer ones are no numbers of ours, and databases refuse them.
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None
