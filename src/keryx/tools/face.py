"""What a tool shows of itself: to the agent its offer, to a person what is asked before it is used."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property

from keryx.agents.agent import ToolOffer
from keryx.domain.json_value import JsonValue
from keryx.domain.toolset import GENERAL
from keryx.domain.turn import StepEffect
from keryx.tools.tool import Use


class Face(ABC):
    """A tool that says what it is with a few names."""

    name: str
    description: str
    effect: StepEffect = "pure"
    toolset: str = GENERAL
    pure_actions: frozenset[str] = frozenset()
    """The values of its argument ``action`` with which it changes nothing."""

    @property
    @abstractmethod
    def properties(self) -> dict[str, JsonValue]:
        """The schemas of its arguments, by name."""

    @property
    @abstractmethod
    def required(self) -> Sequence[str]:
        """The arguments that must be given."""

    @cached_property
    def offer(self) -> ToolOffer:
        """What the agent is told of it: every turn asks for it, and it is always the same."""
        schema: dict[str, JsonValue] = {
            "type": "object",
            "properties": self.properties,
            "required": list(self.required),
            "additionalProperties": False,
        }
        return ToolOffer(
            name=self.name,
            description=self.description,
            parameters=schema,
            effect=self.effect,
            toolset=self.toolset,
            pure_actions=self.pure_actions,
        )

    def question(self, use: Use) -> str:  # noqa: ARG002 - the same whatever it is used for
        """Return what a person is asked before it is done, if anybody ever is."""
        return f"May I use {self.name}?"

    def pattern(self, use: Use) -> str | None:  # noqa: ARG002 - the same whatever it is used for
        """Return what a person's lasting yes would cover; None for every use of the tool."""
        return None
