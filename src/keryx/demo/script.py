"""The shapes of sample conversations: who says what where, and what is answered. Values only."""

from collections.abc import Mapping
from dataclasses import field

from keryx.clock import MINUTE, Micros
from keryx.domain.json_value import JsonValue
from keryx.domain.route import Address
from keryx.domain.source import Source
from keryx.domain.turn import StepEffect
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool that is called, and what it gives back."""

    name: str
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)
    output: str = ""
    effect: StepEffect = "pure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """Something said and what comes of it: an answer, a failure, a question back, or what a command does."""

    said: str
    answer: str | None = None
    by: Source | None = None
    """Who says it, where it is not who speaks in the conversation."""
    thinking: str | None = None
    calls: tuple[Call, ...] = ()
    failed: str | None = None
    """Why there is no answer; where there is one too, it is what was said before."""
    stopped: bool = False
    asks: str | None = None
    """The question that the last call waits for."""
    picture: str | None = None
    """The name of a picture that is sent along."""
    to: tuple[Address, ...] | None = None
    """Where the answer goes, if not to where it was asked."""
    undelivered: str | None = None
    """Why the platform does not take the answer."""
    after: Micros = 2 * MINUTE
    """How long after the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """A fork of a conversation: its title, what is said in it, and what is answered."""

    title: str
    said: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A background process: how it ends, and what the agent makes of that."""

    command: str
    exit_code: int
    tail: str
    told: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Some exchanges at one place, ``ago`` before now."""

    source: Source
    ago: Micros
    exchanges: tuple[Exchange, ...]
    model: str | None = None
    tags: tuple[str, ...] = ()
    pinned: bool = False
    archived: bool = False
    deleted: bool = False
    project: str | None = None
    memories: tuple[str, ...] = ()
    draft: str | None = None
    unread: bool = False
    forked: Fork | None = None
    jobs: tuple[Job, ...] = ()
    """What runs in the background after it was spoken of."""
