"""What a tool is: an offer to the agent, and what happens when it is called."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Protocol

from keryx.agents.agent import ToolOffer
from keryx.domain.json_value import JsonValue
from keryx.domain.source import Source
from keryx.errors import KeryxError
from keryx.values import dataclass


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
    workspace: str | None = None
    """The folder the session works in, where it has one of its own."""
    source: Source | None = None
    """Where the message came from that is answered; None where the turn answers nobody."""
    tools: Sequence[str] = ()
    """The names of the tools this turn is given."""
    answer: str | None = None
    """What the person said who was asked about it, where that was more than yes."""
    turn_id: int | None = None
    """The turn that makes it; None outside of one."""

    def text(self, name: str) -> str:
        """Return an argument that must be a text with something in it."""
        value = self.arguments.get(name)
        if not isinstance(value, str) or not value.strip():
            raise ToolFailed(f"Give {name!r}: a text.")
        return value

    def text_if_any(self, name: str) -> str | None:
        """Return an argument that may be left out, or be null or empty."""
        return None if self.arguments.get(name) in (None, "") else self.text(name)

    def number(self, name: str, *, otherwise: int, most: int) -> int:
        """Return a whole number from 1 to ``most`` that may be left out; models write numbers as texts, too."""
        value = self.arguments.get(name)
        if value is None:
            return otherwise
        number = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
        if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= most:
            raise ToolFailed(f"Give {name!r}: a whole number from 1 to {most}.")
        return number

    def names(self, name: str) -> list[str] | None:
        """Return an argument that is a list of texts, or None where it is left out."""
        value = self.arguments.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(each, str) and each.strip() for each in value):
            raise ToolFailed(f"Give {name!r}: a list of texts.")
        return [str(each) for each in value]


class Tool(Protocol):
    """Something an agent may call."""

    @property
    def offer(self) -> ToolOffer:
        """What the agent is told of it."""

    async def run(self, use: Use) -> JsonValue:
        """Do it and return what came of it, or raise ``ToolFailed``."""

    def question(self, use: Use) -> str:
        """Return what a person is asked before it is done, where its effect is ``ask``."""

    def pattern(self, use: Use) -> str | None:
        """Return what a lasting yes to this use would cover; None for every use of the tool.

        Plain words that begin one of the arguments, and a star: ``git log *``. See ``domain.approval_rule``.
        """


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

    def pattern(self, use: Use) -> str | None:
        """Return what a lasting yes would cover."""
        return self._tool.pattern(use)


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
        return [tool.offer for _, tool in sorted(self._tools().items())]

    def only(self, wanted: Callable[[ToolOffer], bool], *, unasked: bool = False) -> "Toolbox":
        """Return the tools whose offers are wanted; ``unasked`` is for a turn in which nobody can be asked."""
        kept = [tool for tool in self._tools().values() if wanted(tool.offer)]
        return Toolbox(Unasked(tool) if unasked and tool.offer.effect == "ask" else tool for tool in kept)

    def find(self, name: str) -> Tool | None:
        """Return the tool called ``name``, or None."""
        return self._tools().get(name)

    def unknown(self, name: str) -> str:
        """Return what an agent is told that calls a tool which is not there."""
        return f"There is no tool {name[:60]!r}. {nearest(name, self._tools())}"


def nearest(name: str, known: Collection[str]) -> str:
    """Return which of the known names are spelled like one that is not, or else all of them."""
    near = get_close_matches(name, known, n=3)
    all_names = ", ".join(sorted(known)) or "none here"
    return f"Did you mean {' or '.join(near)}?" if near else f"There are: {all_names}."
