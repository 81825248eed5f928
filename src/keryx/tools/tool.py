"""The contract of tools, and the toolbox that holds the tools of a gateway or of a turn."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Protocol

from keryx.core.conversations.rules.source import Source
from keryx.core.turns.rules.tool_offer import ToolOffer
from keryx.core.values.json_value import JsonValue
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a tool: its arguments, for whom it is made, and where."""

    arguments: Mapping[str, JsonValue]
    session_id: str
    person_id: int
    audience_id: int | None
    """The people who also read the answer; None in a private conversation."""
    key: str
    """The key of the call. It stays the same if the call runs again after a crash."""
    workspace: str | None = None
    """The session's own workspace, if it has one."""
    source: Source | None = None
    """The source of the message that is answered; None if the turn answers no message."""
    tools: Sequence[str] = ()
    """The names of the tools that the turn is given."""
    answer: str | None = None
    """The person's answer to the tool's question, if it was more than yes."""
    turn_id: int | None = None
    """The turn that makes the call; None outside a turn."""


class Tool(Protocol):
    """Something that an agent may call."""

    offer: ToolOffer
    """The description for the agent."""

    async def run(self, call: ToolCall) -> JsonValue:
        """Run the tool and return its result, or raise ``ToolFailed``."""

    def question(self, call: ToolCall) -> str:  # noqa: ARG002 - the same for every call
        """Return the question that a person is asked before the tool runs, if its effect is ``ask``."""
        return f"May I use {self.offer.name}?"

    def pattern(self, call: ToolCall) -> str | None:  # noqa: ARG002 - the same for every call
        """Return the calls that a standing approval would cover; None for every call of the tool.

        The pattern is a plain beginning of one of the arguments, and a star: ``git log *``. See
        ``approvals.rules.standing_rule``.
        """
        return None


class UnattendedTool(Tool):
    """A tool in a turn in which no person can be asked: it runs without a question, and at most once."""

    def __init__(self, tool: Tool) -> None:
        self._tool = tool
        self.offer = replace(tool.offer, effect="once")

    async def run(self, call: ToolCall) -> JsonValue:
        """Run the tool."""
        return await self._tool.run(call)


class ToolSource(Protocol):
    """A source of tools that may come and go while a gateway runs."""

    def tools(self) -> Sequence[Tool]:
        """Return the tools that are available now."""

    async def ready(self) -> None:
        """Return when the tools are worth asking for, and after a short time in any case."""

    def troubles(self) -> Sequence[str]:
        """Return a sentence for owners about each problem with the tools."""

    async def aclose(self) -> None:
        """End everything that was started."""


class Toolbox:
    """The tools of a gateway, by name. A tool of its own takes precedence over one of a source."""

    def __init__(self, tools: Iterable[Tool] = (), *, sources: Sequence[ToolSource] = ()) -> None:
        self._own = {tool.offer.name: tool for tool in tools}
        self._sources = sources

    def _tools(self) -> Mapping[str, Tool]:
        if not self._sources:
            return self._own
        more = {tool.offer.name: tool for source in self._sources for tool in source.tools()}
        return more | self._own

    async def ready(self) -> None:
        """Return when the sources are ready, before a turn begins."""
        for source in self._sources:
            await source.ready()

    def offers(self) -> Sequence[ToolOffer]:
        """Return the descriptions for an agent, sorted by name so that its prompt stays the same."""
        return [tool.offer for _, tool in sorted(self._tools().items())]

    def only(self, wanted: Callable[[ToolOffer], bool], *, unattended: bool = False) -> "Toolbox":
        """Return the tools whose offers are wanted; in an ``unattended`` turn no person can be asked."""
        kept = [tool for tool in self._tools().values() if wanted(tool.offer)]
        return Toolbox(
            UnattendedTool(tool) if unattended and tool.offer.effect == "ask" else tool for tool in kept
        )

    def find(self, name: str) -> Tool | None:
        """Return the tool called ``name``, or None."""
        return self._tools().get(name)

    def unknown(self, name: str) -> str:
        """Return the error for an agent that calls a tool which does not exist."""
        return f"There is no tool {name[:60]!r}. {nearest(name, self._tools())}"


def nearest(name: str, known: Collection[str]) -> str:
    """Return the known names that are spelled like an unknown name, or else all known names."""
    near = get_close_matches(name, known, n=3)
    if near:
        return f"Did you mean {' or '.join(near)}?"
    return f"There are: {', '.join(sorted(known)) or 'none here'}."
