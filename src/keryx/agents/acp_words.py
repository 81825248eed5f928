"""What the ACP agent and whoever speaks the protocol know of each other, in our own words.

The agent decides what is asked, kept and allowed; the link knows the protocol's package, which takes a second to load.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias

from keryx.domain.json_value import JsonValue
from keryx.values import dataclass

KINDS: Final = (
    *("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"),
)
"""What the protocol calls the kinds of tools."""
OWN: Final = "acp_"
"""How the names begin of what the agent did itself; none of ours does."""
PERMISSION: Final = "acp_permission"
"""The call by which a person is asked for the agent."""


def tool_name(kind: str) -> str:
    """Return the name under which a tool that the agent used itself is kept."""
    return f"{OWN}{kind if kind in KINDS else 'other'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoke:
    """A piece of the answer, or of what is thought."""

    text: str
    is_thought: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What is known now of a tool that the agent uses itself; what is None has not changed."""

    call_id: str
    title: str | None = None
    kind: str | None = None
    given: JsonValue = None
    output: JsonValue = None
    has_failed: bool = False
    is_done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the agent wants to be allowed; it waits until it is answered."""

    title: str
    kind: str
    given: JsonValue
    decided: "asyncio.Future[bool]"

    def answer(self, *, allowed: bool) -> None:
        """Tell the agent; if it has given up waiting, nobody hears it."""
        if not self.decided.done():
            self.decided.set_result(allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """The end of what was asked: in order, refused with a reason, or because the program is gone."""

    reason: str
    """The protocol's word for how it ended; of a failure, words for a person."""
    has_failed: bool = False
    is_lost: bool = False
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0


Event: TypeAlias = Spoke | Used | Wish | Over


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """An image that goes with a prompt."""

    media_type: str
    content: bytes


class Asking(Protocol):
    """A prompt under way."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended, whatever of it was heard."""

    async def next(self) -> Event:
        """Return what came next; the last is an ``Over``."""

    async def cancel(self) -> None:
        """Ask the agent to end it, and return when it has."""


class Link(Protocol):
    """A program that is started and has said what it can do."""

    name: str
    takes_pictures: bool

    @property
    def is_gone(self) -> bool:
        """Whether it has ended."""

    async def open(self, folder: str) -> str:
        """Begin a conversation of its own and return its id; raise ``AgentFailed`` where that fails."""

    async def load(self, session: str, folder: str) -> bool:
        """Take an earlier one up again, and say whether that worked."""

    def ask(self, session: str, text: str, pictures: Sequence[Picture] = ()) -> Asking:
        """Say something in a conversation."""

    async def close(self) -> None:
        """End the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of a tool that the agent used itself."""

    output: JsonValue
    has_failed: bool


class Reports:
    """What the agent has done itself and the stage is about to keep: at most one for a session."""

    def __init__(self) -> None:
        self._waiting: dict[str, Report] = {}

    def give(self, session_id: str, report: Report) -> None:
        """Leave a report for the call that is kept next."""
        self._waiting[session_id] = report

    def take(self, session_id: str) -> Report | None:
        """Return what was left; None after a crash, when nobody knows any more."""
        return self._waiting.pop(session_id, None)
