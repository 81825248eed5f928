"""The scripted model with Anthropic's protocol: ``/v1/messages``, streamed or whole."""

from collections.abc import Iterator
from json import dumps, loads

from keryx.core.values.json_value import JsonValue
from keryx.testing.model_server.script import Asked, Piece, PieceKind, Refusal, Reply

PATH = "/v1/messages"
_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class AnthropicWire:
    """One answer in this protocol: blocks that start, grow and stop."""

    def __init__(self, reply: Reply, asked: Asked) -> None:
        self._reply = reply
        self._model = asked.model
        self.streams = bool(asked.body.get("stream"))
        self._block_no = -1
        self._open: PieceKind | None = None

    def begin(self) -> Iterator[str]:
        """Yield the events before the first piece."""
        head = {**self._head(), "content": [], "stop_reason": None, "usage": self._usage(output_tokens=1)}
        yield _event("message_start", {"message": head})
        yield _event("ping", {})

    def piece(self, piece: Piece) -> Iterator[str]:
        """Yield the events of a piece, including the stop and start of blocks."""
        match piece.kind:
            case "text":
                yield from self._block("text", {"type": "text", "text": ""})
                yield self._delta({"type": "text_delta", "text": piece.text})
            case "thinking":
                yield from self._block("thinking", {"type": "thinking", "thinking": "", "signature": ""})
                yield self._delta({"type": "thinking_delta", "thinking": piece.text})
            case "call":
                call = self._reply.calls[piece.call_no]
                yield from self._end_block()
                yield from self._block(
                    "call", {"type": "tool_use", "id": call.call_id, "name": call.name, "input": {}}
                )
            case "arguments":
                yield self._delta({"type": "input_json_delta", "partial_json": piece.text})

    def end(self) -> Iterator[str]:
        """Yield the stop reason and the usage."""
        yield from self._end_block()
        if not self._reply.ends_early:
            delta: JsonValue = {"stop_reason": self._finish, "stop_sequence": None}
            yield _event("message_delta", {"delta": delta, "usage": self._usage()})
            yield _event("message_stop", {})

    def whole(self) -> JsonValue:
        """Return the whole answer, for a client without streaming."""
        reply = self._reply
        content: list[JsonValue] = []
        if reply.thinking:
            content.append({"type": "thinking", "thinking": reply.thinking, "signature": reply.signature})
        if reply.text:
            content.append({"type": "text", "text": reply.text})
        content += [
            {"type": "tool_use", "id": call.call_id, "name": call.name, "input": loads(call.text)}
            for call in reply.calls
        ]
        return {
            **self._head(),
            "content": content,
            "stop_reason": self._finish,
            "usage": self._usage(),
        }

    @property
    def _finish(self) -> str:
        return self._reply.finish or ("tool_use" if self._reply.calls else "end_turn")

    def _head(self) -> dict[str, JsonValue]:
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "stop_sequence": None,
        }

    def _usage(self, *, output_tokens: int | None = None) -> dict[str, JsonValue]:
        reply = self._reply
        return {
            # In this protocol, input tokens do not include cached tokens.
            "input_tokens": reply.input_tokens - reply.cached_tokens,
            "cache_read_input_tokens": reply.cached_tokens,
            "cache_creation_input_tokens": 0,
            "output_tokens": reply.output_tokens if output_tokens is None else output_tokens,
            "output_tokens_details": {"thinking_tokens": reply.thinking_tokens},
        }

    def _block(self, kind: PieceKind, block: dict[str, JsonValue]) -> Iterator[str]:
        if self._open == kind:
            return
        yield from self._end_block()
        self._open = kind
        self._block_no += 1
        yield _event("content_block_start", {"index": self._block_no, "content_block": block})

    def _end_block(self) -> Iterator[str]:
        if self._open is None:
            return
        if self._open == "thinking":
            yield self._delta({"type": "signature_delta", "signature": self._reply.signature})
        self._open = None
        yield _event("content_block_stop", {"index": self._block_no})

    def _delta(self, delta: dict[str, JsonValue]) -> str:
        return _event("content_block_delta", {"index": self._block_no, "delta": delta})


def refused(refusal: Refusal) -> JsonValue:
    """Return the body of an error."""
    kind = refusal.kind or _KINDS.get(refusal.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": refusal.message}}


def _event(name: str, fields: dict[str, JsonValue]) -> str:
    return f"event: {name}\ndata: {dumps({'type': name, **fields})}\n\n"
