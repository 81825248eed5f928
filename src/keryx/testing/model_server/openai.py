"""The scripted model with OpenAI's protocol: ``/v1/chat/completions``, streamed or whole."""

from collections.abc import Iterator
from json import dumps

from keryx.core.values.json_value import JsonValue
from keryx.testing.model_server.script import Asked, Piece, Refusal, Reply

PATH = "/v1/chat/completions"
_KINDS = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded", 503: "overloaded"}


class OpenAIWire:
    """One answer in this protocol."""

    def __init__(self, reply: Reply, asked: Asked) -> None:
        self._reply = reply
        self._model = asked.model
        self.streams = bool(asked.body.get("stream"))

    def begin(self) -> Iterator[str]:
        """Yield the events before the first piece."""
        yield self._chunk({"role": "assistant", "content": ""})

    def piece(self, piece: Piece) -> Iterator[str]:
        """Yield the events of a piece."""
        call = self._reply.calls[piece.call_no] if self._reply.calls else None
        match piece.kind:
            case "text":
                yield self._chunk({"content": piece.text})
            case "thinking":
                yield self._chunk({"reasoning_content": piece.text})
            case "call":
                assert call is not None
                function: dict[str, JsonValue] = {"name": piece.text, "arguments": ""}
                yield self._call(
                    piece.call_no, {"id": call.call_id, "type": "function", "function": function}
                )
            case "arguments":
                yield self._call(piece.call_no, {"function": {"arguments": piece.text}})

    def end(self) -> Iterator[str]:
        """Yield the finish reason and the usage."""
        if not self._reply.ends_early:
            yield self._chunk({}, finish=self._finish)
            yield _event({**self._head("chat.completion.chunk"), "choices": [], "usage": self._usage})
            yield "data: [DONE]\n\n"

    def whole(self) -> JsonValue:
        """Return the whole answer, for a client without streaming."""
        reply = self._reply
        message: dict[str, JsonValue] = {"role": "assistant", "content": reply.text or None}
        if reply.thinking:
            message["reasoning_content"] = reply.thinking
        if reply.calls:
            message["tool_calls"] = [
                {
                    "id": call.call_id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.text},
                }
                for call in reply.calls
            ]
        choice: JsonValue = {"index": 0, "message": message, "finish_reason": self._finish}
        return {**self._head("chat.completion"), "choices": [choice], "usage": self._usage}

    @property
    def _finish(self) -> str:
        return self._reply.finish or ("tool_calls" if self._reply.calls else "stop")

    @property
    def _usage(self) -> dict[str, JsonValue]:
        reply = self._reply
        return {
            "prompt_tokens": reply.input_tokens,
            "completion_tokens": reply.output_tokens,
            "total_tokens": reply.input_tokens + reply.output_tokens,
            "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": reply.thinking_tokens},
        }

    def _head(self, kind: str) -> dict[str, JsonValue]:
        return {"id": "chatcmpl-1", "object": kind, "created": 0, "model": self._model}

    def _call(self, number: int, call: dict[str, JsonValue]) -> str:
        return self._chunk({"tool_calls": [{"index": number, **call}]})

    def _chunk(self, delta: dict[str, JsonValue], *, finish: str | None = None) -> str:
        choice: JsonValue = {"index": 0, "delta": delta, "finish_reason": finish}
        return _event({**self._head("chat.completion.chunk"), "choices": [choice]})


def refused(refusal: Refusal) -> JsonValue:
    """Return the body of an error."""
    kind = refusal.kind or _KINDS.get(refusal.status)
    return {"error": {"message": refusal.message, "type": kind, "param": None, "code": kind}}


def _event(value: JsonValue) -> str:
    return f"data: {dumps(value)}\n\n"
