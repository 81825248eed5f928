"""What a plug-in of an agent brings: its settings, and how the agent is made.

The agent ``<name>`` answers where the setting ``agent.<name>``, or one below it, has a value. Else the default agent
answers.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

from keryx.agents.agent import Agent
from keryx.clock import Clock
from keryx.config import Answering, Configuration, Plugin
from keryx.tools.tool import Tool
from keryx.values import dataclass

ReadMedia: TypeAlias = Callable[[Sequence[str]], Awaitable[Mapping[str, bytes]]]


async def _nothing() -> None:
    """Be ready."""


def _none(_: Configuration) -> None:
    """Have nothing to tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentContext:
    """What an agent is made with."""

    configuration: Configuration
    clock: Clock
    read_media: ReadMedia
    """Returns the contents of blobs that messages show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answerer:
    """An agent with what the wiring needs to know about it."""

    agent: Agent
    who: Answering = Answering(default="an agent of its own", takes_models=False)
    """Who answers, as people are told."""
    tools: Sequence[Tool] | None = None
    """The agent's own tools, which replace those of the tool plug-ins; None for the latter."""
    warm_up: Callable[[], Awaitable[None]] = _nothing
    """Loads what the first turn will need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlugin(Plugin):
    """One agent that can be set up to answer."""

    make: Callable[[AgentContext], Answerer]
    unused: Callable[[Configuration], str | None] = _none
    """Says which of its settings have no effect while another agent answers."""
