"""What a command handler is given, and what it gives back.

Everything a handler says may be read by the whole chat, so it speaks only of what was said to that audience.
"""

from typing import Literal

from keryx.clock import DAY, HOUR, MINUTE, Micros
from keryx.config import Settings
from keryx.domain.graphemes import cut
from keryx.domain.person import Person
from keryx.domain.session import SessionId
from keryx.domain.session_key import SessionKey
from keryx.domain.source import Source
from keryx.ids import Ids
from keryx.transactions.resume_session import Surface
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
