"""The contract of an agent plug-in: its settings, and how the agent is made.

The agent ``<name>`` answers where the setting ``agent.<name>``, or one below it, has a value. Else the default agent
answers.
"""

from collections.abc import Awaitable, Callable, Sequence

from keryx.agents.agent import Agent, ReadMedia
from keryx.clock import Clock
from keryx.config import Answering, Configuration, Plugin
from keryx.tools.tool import Tool
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentContext:
    """The arguments for making an agent."""

    configuration: Configuration
    clock: Clock
    read_media: ReadMedia


@dataclass(frozen=True, slots=True, kw_only=True)
class Answerer:
    """An agent, with the facts that the wiring needs."""

    agent: Agent
    who: Answering = Answering(default="an agent of its own", takes_models=False)
    """The name that people see."""
    tools: Sequence[Tool] | None = None
    """The agent's own tools, which replace those of the tool plug-ins; None for the latter."""
    warm_up: Callable[[], Awaitable[None]] | None = None
    """Loads what the first turn will need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlugin(Plugin):
    """One agent that can be set up to answer."""

    make: Callable[[AgentContext], Answerer]
    unused: Callable[[Configuration], str | None] = lambda _: None
    """Says which of its settings have no effect while another agent answers."""
