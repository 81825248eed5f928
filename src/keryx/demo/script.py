"""Value types for sample conversations: messages, answers, and what happens around them."""

from collections.abc import Mapping
from dataclasses import field

from keryx.clock import MINUTE, Micros
from keryx.core.conversations.rules.source import Source
from keryx.core.deliveries.rules.route import Address
from keryx.core.values.json_value import JsonValue
from keryx.core.values.turn_states import StepEffect
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleCall:
    """A tool call and its result."""

    name: str
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)
    output: str = ""
    effect: StepEffect = "pure"


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleExchange:
    """A message and its outcome: an answer, a failure, a question, or the effect of a command."""

    said: str
    answer: str | None = None
    by: Source | None = None
    """The author, if not the conversation's usual author."""
    thinking: str | None = None
    calls: tuple[SampleCall, ...] = ()
    failed: str | None = None
    """Why the turn failed; ``answer`` is then the text before the failure."""
    stopped: bool = False
    asks: str | None = None
    """The approval question for the last call."""
    picture: str | None = None
    """The file name of a picture sent with the message."""
    to: tuple[Address, ...] | None = None
    """The destinations of the answer, if not the chat that asked."""
    undelivered: str | None = None
    """Why the platform rejects the answer."""
    after: Micros = 2 * MINUTE
    """The time until the next exchange."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """A fork of a conversation, with one message and its answer."""

    title: str
    said: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleProcess:
    """A background process, its end, and the agent's message about the end."""

    command: str
    exit_code: int
    tail: str
    told: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleConversation:
    """Exchanges in one chat that begin ``ago`` before now."""

    source: Source
    ago: Micros
    exchanges: tuple[SampleExchange, ...]
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
    jobs: tuple[SampleProcess, ...] = ()
    """The background processes that start after the exchanges."""
