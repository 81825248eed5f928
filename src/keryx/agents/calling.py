"""What the model agent and whoever calls providers know of each other, in our own words.

The agent decides what is asked, of whom, and how often; the caller knows providers. So the agent can be made without
loading any of their packages, which takes seconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Protocol

from keryx.agents.agent import Said, ToolOffer
from keryx.clock import Micros
from keryx.domain.message import NewMessage
from keryx.domain.prices import Price
from keryx.domain.settings import ModelSettings
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a model is asked."""

    instructions: str
    context: str
    spoken: Sequence[Said | NewMessage]
    tools: Sequence[ToolOffer] = ()
    settings: ModelSettings = field(default_factory=ModelSettings)
    media: Mapping[str, bytes] = field(default_factory=dict)
    """The contents of blobs that the messages show."""
    is_group: bool = False
    request: str | None = None
    """What Keryx itself asks, in a turn that answers nobody."""
    may_call: bool = True
    """False for the last word, when the tools are there to be read about and not to be called."""


class Listener(Protocol):
    """Hears an answer while it is written."""

    async def say(self, text: str) -> None:
        """Hear a piece of the answer."""

    async def think(self, text: str) -> None:
        """Hear a piece of what is thought."""

    async def pause(self, reason: str) -> None:
        """Hear why nothing comes for now."""


class CallFailed(Exception):
    """A model did not answer."""

    def __init__(
        self,
        reason: str,
        *,
        may_pass: bool = False,
        retry_after: Micros | None = None,
        heard: bool = False,
        too_long: bool = False,
    ) -> None:
        """Say why, in words a person can read: ``may_pass`` if trying again can help, ``heard`` if part of it came.

        ``too_long`` is what was asked where a shorter question could be answered.
        """
        super().__init__(reason)
        self.reason = reason
        self.may_pass = may_pass
        self.retry_after = retry_after
        self.heard = heard
        self.too_long = too_long


class Caller(Protocol):
    """Asks models, named ``provider:model``."""

    async def ask(self, model: str, question: Question, listener: Listener) -> NewMessage:
        """Return the answer, whose pieces the listener has heard; raise ``CallFailed`` where there is none."""

    async def prepare(self, model: str) -> None:
        """Load what the model needs; raise ``CallFailed`` where it cannot be asked."""

    async def window(self, model: str) -> int | None:
        """Return how many tokens a model reads and writes at most; None where that is not known."""

    async def close(self) -> None:
        """Let go of connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How providers are reached."""

    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Keys and addresses by the names their own packages read, such as ``OPENAI_API_KEY``."""
    timeout_seconds: float = 120.0
    """How long a model may be silent, before its first word and after any other."""
    answer_seconds: float = 1_800.0
    """How long one answer may take in all: one that drips for ever is never silent."""
    prices: Mapping[str, Price] = field(default_factory=dict)
    """The owner's own prices, by the names of models."""
