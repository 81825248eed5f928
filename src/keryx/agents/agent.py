"""What the gateway and whoever answers know of each other.

An agent is given a brief and a stage. What it says and does, it does on the stage, which makes it durable before it
takes effect; in the end it returns its answer. It is cancelled like any task, and the stage keeps what it had said.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

from keryx.clock import Micros
from keryx.domain.cover import Cover, Summary
from keryx.domain.gauge import Gauge
from keryx.domain.json_value import JsonValue
from keryx.domain.message import Message, NewMessage, ToolResultPart
from keryx.domain.person import Role
from keryx.domain.prompt import ContextFacts
from keryx.domain.settings import ModelSettings
from keryx.domain.toolset import GENERAL
from keryx.domain.turn import StepEffect, TurnId, TurnPurpose
from keryx.errors import KeryxError
from keryx.values import dataclass

Said: TypeAlias = Message | Cover
"""What a model reads of the past: a message, or the summary that stands for several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOffer:
    """A tool the agent may call; ``parameters`` is the JSON schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, JsonValue]
    effect: StepEffect
    toolset: str = GENERAL
    """The named set it belongs to: sets are granted by role and platform."""
    is_foreign: bool = False
    """Whether a program that the owner named does it: on a messaging platform its set must be named."""
    pure_actions: frozenset[str] = frozenset()
    """The values of its argument ``action`` with which it changes nothing, whatever its effect is otherwise."""

    def effect_of(self, arguments: JsonValue) -> StepEffect:
        """Return the effect of one call."""
        action = arguments.get("action") if isinstance(arguments, dict) else None
        return "pure" if isinstance(action, str) and action in self.pure_actions else self.effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """What an agent is given: where it is, whom it answers, what was said, and what it may do."""

    turn_id: TurnId
    session_id: str
    purpose: TurnPurpose
    context: ContextFacts
    messages: Sequence[Said]
    """The active branch as a model reads it, ending with what is to be answered; every call in it has its result."""
    tools: Sequence[ToolOffer]
    role: Role
    """Of the person it speaks with."""
    model: str | None = None
    model_settings: ModelSettings | None = None
    has_failed: bool = False
    """Whether the last attempt at this turn failed."""
    focus: str | None = None
    """What a person who asks for a summary wants it to dwell on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A model as ``provider:name``, and the system prompt and the list of tools it was given, word for word."""

    model: str
    prompt: str
    tools: str
    gauge: Gauge | None = None
    """How full its context is: an estimate before it answers, then by its provider's count; None where not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDone:
    """What came of a step: the results in the order of its calls, and what people said meanwhile."""

    results: tuple[ToolResultPart, ...]
    joined: tuple[NewMessage, ...] = ()
    """Messages that steer: the agent goes on with them in view."""


class Stage(Protocol):
    """Where an agent speaks and acts. Every call may be the last: the agent is cancelled when it is stopped."""

    async def say(self, text: str) -> None:
        """Show a piece of the answer, as it is written."""

    async def think(self, text: str) -> None:
        """Show a piece of what is thought before the answer."""

    async def pause(self, reason: str) -> None:
        """Tell those who wait why nothing comes for now; it holds until something does."""

    async def show_call(self, text: str) -> None:
        """Show in a line what the agent does itself; ``act`` keeps it when it is done."""

    async def note_model(self, asked: Asked) -> None:
        """Keep which model the turn asked, and with what; the last one counts."""

    async def act(self, step: NewMessage) -> StepDone:
        """Carry out the calls of an assistant's message, which is stored before any of them starts."""

    async def reread(self) -> Sequence[Said]:
        """Return what a model reads of the conversation now, the steps of this turn included."""

    async def pinned(self) -> frozenset[int]:
        """Return the numbers of the messages that people pinned, which summaries should leave as they are."""

    async def cover(self, summary: Summary) -> bool:
        """Let a summary stand for a range of what ``reread`` returned; say whether it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a turn ends with; None, or ``silent``, says nothing to anybody."""

    message: NewMessage | None
    silent: bool = False
    notice: str | None = None
    """What is told where it was asked, and is no part of the conversation."""
    unsaid: NewMessage | None = None
    """The answer to what Keryx itself asked: it stands in no transcript, but what it used counts."""


class AgentFailed(KeryxError):
    """The agent cannot answer: the reason in words a person can read, and after how long it is worth trying again."""

    def __init__(self, reason: str, *, retry_after: Micros | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after = retry_after


class Agent(Protocol):
    """Answers turns, any number at once."""

    async def run(self, brief: Brief, stage: Stage) -> Answer:
        """Answer one turn, or raise ``AgentFailed``."""

    async def close(self) -> None:
        """Let go of connections and processes."""
