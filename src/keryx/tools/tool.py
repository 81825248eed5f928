"""What a tool is: an offer to the agent, and what happens when it is called."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Protocol

from keryx.agents.agent import ToolOffer
from keryx.domain.json_value import JsonValue
from keryx.errors import KeryxError


class ToolFailed(KeryxError):
    """The tool could not do it; the sentence goes to the agent as the call's result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One call: for whom, where, and under which key, which stays the same if a crash makes it run again."""

    arguments: Mapping[str, JsonValue]
    session_id: str
    person_id: int
    audience_id: int | None
    """Who else reads the answer; None in a private conversation."""
    key: str

    def text(self, name: str) -> str:
        """Return an argument that must be a text with something in it."""
        value = self.arguments.get(name)
        if not isinstance(value, str) or not value.strip():
            raise ToolFailed(f"Give {name!r}: a text.")
        return value


class Tool(Protocol):
    """Something an agent may call."""

    @property
    def offer(self) -> ToolOffer:
        """What the agent is told of it."""

    async def run(self, use: Use) -> JsonValue:
        """Do it and return what came of it, or raise ``ToolFailed``."""

    def question(self, use: Use) -> str:
        """Return what a person is asked before it is done, where its effect is ``ask``."""


class Unasked:
    """A tool in a turn in which nobody can be asked: it is done once, and the person sees it afterwards."""

    def __init__(self, tool: Tool) -> None:
        self._tool = tool

    @property
    def offer(self) -> ToolOffer:
        """What the agent is told of it."""
        return replace(self._tool.offer, effect="once")

    async def run(self, use: Use) -> JsonValue:
        """Do it."""
        return await self._tool.run(use)

    def question(self, use: Use) -> str:
        """Return what a person would be asked."""
        return self._tool.question(use)


class ToolSource(Protocol):
    """Where tools come from that may come and go while a gateway runs."""

    def tools(self) -> Sequence[Tool]:
        """Return those that are there now."""

    async def ready(self) -> None:
        """Return when it is worth asking for them, soon in any case."""


class Toolbox:
    """The tools of a gateway, by name; a tool of its own wins over one of a source."""

    def __init__(self, tools: Iterable[Tool] = (), *, sources: Sequence[ToolSource] = ()) -> None:
        self._own = {tool.offer.name: tool for tool in tools}
        self._sources = sources

    @property
    def _tools(self) -> Mapping[str, Tool]:
        if not self._sources:
            return self._own
        more = {tool.offer.name: tool for source in self._sources for tool in source.tools()}
        return more | self._own

    async def ready(self) -> None:
        """Return when the sources are, before a turn begins."""
        for source in self._sources:
            await source.ready()

    def offers(self) -> Sequence[ToolOffer]:
        """Return what an agent is told, by name, so that its prompt stays the same."""
        return [self._tools[name].offer for name in sorted(self._tools)]

    def only(self, wanted: Callable[[ToolOffer], bool], *, unasked: bool = False) -> "Toolbox":
        """Return the tools whose offers are wanted; ``unasked`` is for a turn in which nobody can be asked."""
        kept = [tool for tool in self._tools.values() if wanted(tool.offer)]
        return Toolbox(Unasked(tool) if unasked and tool.offer.effect == "ask" else tool for tool in kept)

    def find(self, name: str) -> Tool | None:
        """Return the tool called ``name``, or None."""
        return self._tools.get(name)

    def unknown(self, name: str) -> str:
        """Return what an agent is told that calls a tool which is not there."""
        near = get_close_matches(name, self._tools, n=3)
        all_names = ", ".join(sorted(self._tools)) or "none here"
        hint = f"Did you mean {' or '.join(near)}?" if near else f"There are: {all_names}."
        return f"There is no tool {name[:60]!r}. {hint}"
