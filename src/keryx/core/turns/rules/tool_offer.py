"""The description of a tool for an agent."""

from collections.abc import Mapping

from keryx.core.people.rules.toolset import GENERAL
from keryx.core.values.json_value import JsonValue
from keryx.core.values.turn_states import StepEffect
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOffer:
    """A tool the agent may call; ``parameters`` is the JSON schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, JsonValue]
    effect: StepEffect
    toolset: str = GENERAL
    """The toolset of the tool: toolsets are granted by role and platform."""
    is_foreign: bool = False
    """Whether a program that the owner configured carries it out: on a messaging platform its toolset must be named."""
    pure_actions: frozenset[str] = frozenset()
    """The values of the argument ``action`` with which a call is pure, whatever the tool's effect is."""

    def effect_of(self, arguments: JsonValue) -> StepEffect:
        """Return the effect of one call."""
        action = arguments.get("action") if isinstance(arguments, dict) else None
        return "pure" if isinstance(action, str) and action in self.pure_actions else self.effect
