"""What a scripted model does when it is asked: answers, in pieces and with faults of its own, or refusals.

A reply is the same in every shape; how it looks on the wire is the business of ``openai``, ``anthropic`` and
``google``. A piece is a word of text or thinking, the beginning of a call, or a bit of its arguments: faults count in
pieces.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from json import dumps
from typing import Literal, TypeAlias

from keryx.domain.json_value import JsonValue
from keryx.values import dataclass

ARGUMENTS_PIECE = 12
"""How many characters of a call's arguments come at once."""

PieceKind = Literal["thinking", "text", "call", "arguments"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call; ``arguments`` as a text are sent as they are, so that they can be broken."""

    name: str
    arguments: Mapping[str, JsonValue] | str = field(default_factory=dict)
    call_id: str = "call_1"

    @property
    def text(self) -> str:
        """The arguments as they are sent."""
        return self.arguments if isinstance(self.arguments, str) else dumps(self.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer, and what goes wrong in it, counted in pieces."""

    text: str = ""
    thinking: str = ""
    signature: str = "signed"
    """Anthropic's proof of the thinking."""
    calls: Sequence[Call] = ()
    input_tokens: int = 10
    cached_tokens: int = 0
    output_tokens: int = 5
    thinking_tokens: int = 0
    """Among the output tokens."""
    finish: str | None = None
    """Why it ended, in the shape's own word; None for what fits the reply."""
    pause_seconds: float = 0.0
    """Before every piece."""
    cut_after: int | None = None
    """The connection is closed after so many pieces."""
    hang_after: int | None = None
    """Nothing more comes after so many pieces, until the client goes or the server lets it."""
    ends_early: bool = False
    """The stream ends properly, without saying why the model stopped; with ``cut_after``, in the middle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An error instead of an answer; ``kind`` is the provider's own word for it."""

    status: int
    message: str = "refused"
    kind: str | None = None
    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request as it came."""

    path: str
    headers: Mapping[str, str]
    """By name in lower case."""
    body: Mapping[str, JsonValue]

    @property
    def model(self) -> str:
        """The model that is asked; Google's clients name it in the path."""
        named = re.search(r"/models/([^:/]+):", self.path)
        return named[1] if named else str(self.body.get("model"))

    @property
    def messages(self) -> list[dict[str, JsonValue]]:
        """The conversation in it."""
        messages = self.body.get("messages", self.body.get("contents"))
        assert isinstance(messages, list), "a request without messages"
        return [message for message in messages if isinstance(message, dict)]


Answer: TypeAlias = Reply | Refusal
Script: TypeAlias = Sequence[Answer] | Callable[[Asked], Answer]
"""What is answered in turn, or how it follows from what was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """The least that is sent: a bit of text, or the beginning of the call with this number."""

    kind: PieceKind
    text: str
    call_no: int = 0


def count_prompt(asked: Asked) -> int:
    """Return how many tokens a request has, by a count of its own: four bytes of all that is sent are one."""
    prompt = [asked.body.get(name) for name in ("system", "messages", "tools")]
    return len(dumps(prompt, ensure_ascii=False).encode("utf-8", "replace")) // 4


def too_long(asked: Asked, tokens: int, window_tokens: int) -> Refusal:
    """Return how either provider refuses a request of so many tokens."""
    if asked.path.startswith("/v1/messages"):
        return Refusal(status=400, message=f"prompt is too long: {tokens} tokens > {window_tokens} maximum")
    return Refusal(
        status=400,
        kind="context_length_exceeded",
        message=f"This model's maximum context length is {window_tokens} tokens; you gave it {tokens}.",
    )


def pieces(reply: Reply) -> Iterator[Piece]:
    """Yield what is sent, in order."""
    for word in _words(reply.thinking):
        yield Piece(kind="thinking", text=word)
    for word in _words(reply.text):
        yield Piece(kind="text", text=word)
    for number, call in enumerate(reply.calls):
        yield Piece(kind="call", text=call.name, call_no=number)
        for start in range(0, len(call.text), ARGUMENTS_PIECE):
            piece = call.text[start : start + ARGUMENTS_PIECE]
            yield Piece(kind="arguments", text=piece, call_no=number)


def _words(text: str) -> list[str]:
    return re.findall(r"\s*\S+|\s+$", text)
