"""The contract between the model agent and the modules that call providers.

The agent decides what is asked, which model is asked, and how often. The caller knows the providers. So the agent can
be created without loading the providers' packages, which takes seconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Protocol

from keryx.agents.agent import AnswerListener, HistoryItem
from keryx.clock import Micros
from keryx.core.context.rules.prices import Price
from keryx.core.conversations.rules.message import NewMessage
from keryx.core.conversations.rules.session_settings import ModelSettings
from keryx.core.turns.rules.tool_offer import ToolOffer
from keryx.core.values.turn_states import TurnId
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPrompt:
    """Everything that a model is sent."""

    instructions: str
    context: str
    messages: Sequence[HistoryItem | NewMessage]
    turn_id: TurnId | None = None
    """The turn that asks; messages that are not stored belong to it."""
    time_lines: Mapping[TurnId, str] = field(default_factory=dict)
    tools: Sequence[ToolOffer] = ()
    settings: ModelSettings = field(default_factory=ModelSettings)
    media: Mapping[str, bytes] = field(default_factory=dict)
    """The contents of the attachments, by hash."""
    is_group: bool = False
    request: str | None = None
    """A request of Keryx itself, in a turn that answers no person."""
    may_call: bool = True
    """False in the last step: the model reads about the tools but may not call them."""


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
        """Take the reason in words for a person.

        ``may_pass`` says that another attempt can help, ``heard`` that a part of the answer was received, and
        ``too_long`` that a shorter prompt could be answered.
        """
        super().__init__(reason)
        self.reason = reason
        self.may_pass = may_pass
        self.retry_after = retry_after
        self.heard = heard
        self.too_long = too_long


class ModelCaller(Protocol):
    """Calls models, named ``provider:model``."""

    async def ask(self, model: str, prompt: ModelPrompt, listener: AnswerListener) -> NewMessage:
        """Return the answer, whose pieces the listener has received; raise ``CallFailed`` if there is none."""

    async def prepare(self, model: str) -> None:
        """Load what the model needs; raise ``CallFailed`` if it cannot be called."""

    async def window(self, model: str) -> int | None:
        """Return the size of the context window in tokens; None if it is not known."""

    async def close(self) -> None:
        """Close all connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How providers are reached."""

    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Keys and addresses by the names that the providers' packages read, such as ``OPENAI_API_KEY``."""
    timeout_seconds: float = 120.0
    """The longest time without output of a model, before and after its first word."""
    answer_seconds: float = 1_800.0
    """How long one answer may take in all, because a model that writes one word a minute is never silent."""
    prices: Mapping[str, Price] = field(default_factory=dict)
    """The owner's own prices, by the names of models."""
