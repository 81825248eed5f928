"""The contract between the gateway and the agents that answer turns.

An agent gets a brief and a stage. Everything it says and does goes through the stage, which stores it before it takes
effect. At the end the agent returns its answer. It is cancelled like any task, and the stage keeps the text so far.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import Final, Protocol, TypeAlias

from keryx.core.context.rules.context_usage import ContextUsage
from keryx.core.context.rules.cover import Cover, Summary
from keryx.core.context.rules.prompt import ContextFacts
from keryx.core.conversations.rules.message import Message, NewMessage, ToolResultPart
from keryx.core.conversations.rules.session_settings import ModelSettings
from keryx.core.turns.rules.tool_offer import ToolOffer
from keryx.core.values.role import Role
from keryx.core.values.turn_states import TurnId, TurnPurpose
from keryx.values import dataclass

HistoryItem: TypeAlias = Message | Cover
"""A message as a model reads it, or the summary that stands for several messages."""
ReadMedia: TypeAlias = Callable[[Sequence[str]], Awaitable[Mapping[str, bytes]]]
"""Reads blobs by their hashes; missing blobs are left out."""
SILENT_PURPOSES: Final = ("flush", "title", "compress")
"""The purposes of turns whose answer is not delivered."""


async def no_media(_hashes: Sequence[str]) -> Mapping[str, bytes]:
    """Read nothing."""
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """The input of a turn: the place, the person, the conversation, and the tools."""

    turn_id: TurnId
    session_id: str
    purpose: TurnPurpose
    context: ContextFacts
    messages: Sequence[HistoryItem]
    """The active branch as a model reads it, up to the messages to answer. Each call in it has its result."""
    time_lines: Mapping[TurnId, str] = field(default_factory=dict)
    """What models are told about when each turn of the conversation began; this turn is one of them."""
    tools: Sequence[ToolOffer]
    role: Role
    """The role of the person."""
    model: str | None = None
    model_settings: ModelSettings | None = None
    guide_explained: bool = False
    """Whether the built-in guide has said in this conversation how to set a model up."""
    has_failed: bool = False
    """Whether the last attempt at this turn failed."""
    focus: str | None = None
    """The subject that a summary should keep, if the person named one."""

    @property
    def is_group(self) -> bool:
        """Whether several people write in the chat."""
        return self.context.source.chat_type != "dm"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUse:
    """A model as ``provider:name``, with the exact system prompt and list of tools that it was sent, if known."""

    model: str
    prompt: str = ""
    tools: str = ""
    context_usage: ContextUsage | None = None
    """How full its context window is: an estimate before the answer, then the provider's count; None if not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDone:
    """The outcome of a step: the results in the order of its calls, and the messages that arrived meanwhile."""

    results: tuple[ToolResultPart, ...]
    joined: tuple[NewMessage, ...] = ()
    """Messages that steer the turn: the agent reads them before it continues."""


class AnswerListener(Protocol):
    """Shows an answer while it is written."""

    async def say(self, text: str) -> None:
        """Show a piece of the answer while it is written."""

    async def think(self, text: str) -> None:
        """Show a piece of the thinking before the answer."""

    async def pause(self, reason: str) -> None:
        """Show why no text comes for now, until the next text comes."""


class Stage(AnswerListener, Protocol):
    """The outlets of an agent. Any call may be the last: the agent is cancelled when the turn is stopped."""

    async def show_call(self, text: str) -> None:
        """Show a line for a tool that the agent runs itself; ``act`` stores it at its end."""

    async def note_model(self, use: ModelUse) -> None:
        """Store the model that the turn asked, and its prompt; the last one counts."""

    async def act(self, step: NewMessage) -> StepDone:
        """Run the calls of an assistant's message, which is stored before any of them starts."""

    async def reread(self) -> Sequence[HistoryItem]:
        """Return the conversation as a model reads it now, with the steps of this turn."""

    async def pinned(self) -> frozenset[int]:
        """Return the numbers of the pinned messages, which summaries should not cover."""

    async def cover(self, summary: Summary) -> bool:
        """Store a summary for a range of the messages that ``reread`` returned; return whether it was stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The end of a turn. Without a message, or with ``silent``, nothing is delivered."""

    message: NewMessage | None
    silent: bool = False
    notice: str | None = None
    """A notice for the chat that asked; it is not part of the conversation."""
    unsaid: NewMessage | None = None
    """The answer to a request of Keryx itself: it is in no transcript, but its tokens count."""


NO_ANSWER: Final = Answer(message=None, silent=True)


class Agent(Protocol):
    """Answers turns, any number at the same time."""

    async def run(self, brief: Brief, stage: Stage) -> Answer:
        """Answer one turn, or raise ``AgentFailed``."""

    async def close(self) -> None:
        """Close all connections and end all processes."""
