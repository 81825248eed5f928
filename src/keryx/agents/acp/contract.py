"""The contract between the ACP agent and the module that speaks the protocol.

The agent decides what is asked, stored and allowed. Only the connection imports the protocol's package, which takes a
second to load.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol, TypeAlias

from keryx.core.values.json_value import JsonValue
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TextChunk:
    """A piece of the answer, or of the thinking."""

    text: str
    is_thought: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUpdate:
    """The state of a tool that the program runs itself; a field that is None has not changed."""

    call_id: str
    title: str | None = None
    kind: str | None = None
    given: JsonValue = None
    output: JsonValue = None
    has_failed: bool = False
    is_done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRequest:
    """A request of the program to be allowed something; the program waits for the answer."""

    title: str
    kind: str
    given: JsonValue
    decided: "asyncio.Future[bool]"

    def answer(self, *, allowed: bool) -> None:
        """Answer the program; the answer is dropped if the program waits no more."""
        if not self.decided.done():
            self.decided.set_result(allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptEnd:
    """The end of a prompt: answered, failed with a reason, or lost because the program ended."""

    reason: str
    """The protocol's word for the end; for a failure, a sentence for a person."""
    has_failed: bool = False
    is_lost: bool = False
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0


ProgramEvent: TypeAlias = TextChunk | ToolUpdate | PermissionRequest | PromptEnd


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptImage:
    """An image of a prompt."""

    media_type: str
    content: bytes


class RunningPrompt(Protocol):
    """A prompt that the program works on."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended, even if events of it are not read yet."""

    async def next(self) -> ProgramEvent:
        """Return the next event; the last one is a ``PromptEnd``."""

    async def cancel(self) -> None:
        """Ask the program to end it, and return when it has ended."""


class ProgramConnection(Protocol):
    """A program that was started and has named its capabilities."""

    name: str
    takes_images: bool

    @property
    def is_gone(self) -> bool:
        """Whether the program has ended."""

    async def open(self, folder: str) -> str:
        """Open a session of the program and return its id, or raise ``AgentFailed``."""

    async def load(self, session: str, folder: str) -> bool:
        """Load an earlier session, and return whether that worked."""

    def ask(self, session: str, text: str, images: Sequence[PromptImage] = ()) -> RunningPrompt:
        """Send a prompt in a session."""

    async def close(self) -> None:
        """End the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReport:
    """The result of a tool that the program ran itself."""

    output: JsonValue
    has_failed: bool


class ToolReports:
    """The results that the stage is about to store: at most one for each session."""

    def __init__(self) -> None:
        self._waiting: dict[str, ToolReport] = {}

    def give(self, session_id: str, report: ToolReport) -> None:
        """Leave a report for the call that is stored next."""
        self._waiting[session_id] = report

    def take(self, session_id: str) -> ToolReport | None:
        """Return the report that was left; None after a crash, when it is lost."""
        return self._waiting.pop(session_id, None)
