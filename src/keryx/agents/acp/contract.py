"""The values that the ACP agent exchanges with ``client``, the module that speaks the protocol.

Only ``client`` imports the protocol's package, which takes a second to load.
"""

import asyncio
from typing import TypeAlias

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


ToolReports: TypeAlias = dict[str, ToolUpdate]
"""The ended tools whose results the stage is about to store, by session: at most one for each."""
