"""The script of a model: answers, in pieces and with faults, or refusals.

A reply is the same for every protocol; ``openai``, ``anthropic`` and ``google`` encode it. A piece is a word of text
or thinking, the beginning of a call, or a part of its arguments. Faults are counted in pieces.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from json import dumps
from typing import Literal, TypeAlias

from keryx.core.values.json_value import JsonValue
from keryx.values import dataclass

ARGUMENTS_PIECE = 12
"""How many characters of a call's arguments are one piece."""

PieceKind = Literal["thinking", "text", "call", "arguments"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call; ``arguments`` given as text are sent unchanged, so that a test can break them."""

    name: str
    arguments: Mapping[str, JsonValue] | str = field(default_factory=dict)
    call_id: str = "call_1"

    @property
    def text(self) -> str:
        """The sent arguments."""
        return self.arguments if isinstance(self.arguments, str) else dumps(self.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer and its faults, counted in pieces."""

    text: str = ""
    thinking: str = ""
    signature: str = "signed"
    """Anthropic's signature of the thinking."""
    calls: Sequence[Call] = ()
    input_tokens: int = 10
    cached_tokens: int = 0
    output_tokens: int = 5
    thinking_tokens: int = 0
    """Included in ``output_tokens``."""
    finish: str | None = None
    """The finish reason in the protocol's own word; None for the reason that fits the reply."""
    pause_seconds: float = 0.0
    """The pause before every piece."""
    cut_after: int | None = None
    """The server closes the connection after this many pieces."""
    hang_after: int | None = None
    """The stream hangs after this many pieces, until the client leaves or ``may_go_on`` is set."""
    ends_early: bool = False
    """The stream ends properly but without a finish reason; with ``cut_after``, in the middle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An error instead of an answer; ``kind`` is the provider's name of the error."""

    status: int
    message: str = "refused"
    kind: str | None = None
    retry_after_seconds: float | None = None
    body: JsonValue = None
    """The whole body, for a server with a form of its own."""
    in_stream: bool = False
    """The error comes as an event of a stream that began well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One received request."""

    path: str
    headers: Mapping[str, str]
    """By name in lower case."""
    body: Mapping[str, JsonValue]

    @property
    def model(self) -> str:
        """The requested model; Google's clients name the model in the path."""
        named = re.search(r"/models/([^:/]+):", self.path)
        return named[1] if named else str(self.body.get("model"))

    @property
    def messages(self) -> list[dict[str, JsonValue]]:
        """The messages of the request."""
        messages = self.body.get("messages", self.body.get("contents"))
        assert isinstance(messages, list), "a request without messages"
        return [message for message in messages if isinstance(message, dict)]


Answer: TypeAlias = Reply | Refusal
Script: TypeAlias = Sequence[Answer] | Callable[[Asked], Answer]
"""The answers in order, or a function from the request to its answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """The smallest unit of a stream: a part of a text, or the beginning of the call with this number."""

    kind: PieceKind
    text: str
    call_no: int = 0


def count_prompt(asked: Asked) -> int:
    """Return the number of tokens in a request, by the server's own count: four bytes are one token."""
    prompt = [asked.body.get(name) for name in ("system", "messages", "tools")]
    return len(dumps(prompt, ensure_ascii=False).encode("utf-8", "replace")) // 4


def too_long(asked: Asked, tokens: int, window_tokens: int) -> Refusal:
    """Return the provider's refusal of a request with too many tokens."""
    if asked.path.startswith("/v1/messages"):
        return Refusal(status=400, message=f"prompt is too long: {tokens} tokens > {window_tokens} maximum")
    return Refusal(
        status=400,
        kind="context_length_exceeded",
        message=f"This model's maximum context length is {window_tokens} tokens; you gave it {tokens}.",
    )


def pieces(reply: Reply) -> Iterator[Piece]:
    """Yield the pieces of a reply, in order."""
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
