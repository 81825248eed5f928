"""The scripted model with Google's protocol: ``/v1/models/NAME:streamGenerateContent`` or ``v1beta``, streamed or not.

A call is sent whole, with the last piece of its arguments; this protocol cannot express broken arguments.
"""

import re
from collections.abc import Iterator
from json import dumps, loads

from keryx.core.values.json_value import JsonValue
from keryx.testing.model_server.script import Asked, Piece, Refusal, Reply

PATH = re.compile(r"/v1(?:beta)?/models/(?P<model>[^:/]+):(?:streamG|g)enerateContent")
LIST_PATH = "/v1beta/models"
_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


class GoogleWire:
    """One answer in this protocol: chunks with parts; the last chunk gives the finish reason."""

    def __init__(self, reply: Reply, asked: Asked) -> None:
        self._reply = reply
        self._model = asked.model
        self.streams = ":stream" in asked.path
        self._calling = 0
        """The number of characters of the call's arguments so far."""

    def begin(self) -> Iterator[str]:
        """Yield nothing: the protocol has no opening event."""
        yield from ()

    def piece(self, piece: Piece) -> Iterator[str]:
        """Yield the chunk of a piece; a call follows its last piece."""
        match piece.kind:
            case "text":
                yield self._chunk([{"text": piece.text}])
            case "thinking":
                yield self._chunk([{"text": piece.text, "thought": True}])
            case "call":
                self._calling = 0
            case "arguments":
                self._calling += len(piece.text)
                if self._calling == len(self._reply.calls[piece.call_no].text):
                    yield self._chunk([self._call(piece.call_no)])

    def end(self) -> Iterator[str]:
        """Yield the finish reason and the usage."""
        if not self._reply.ends_early:
            yield self._chunk([{"text": ""}], finish=self._reply.finish or "STOP")

    def whole(self) -> JsonValue:
        """Return the whole answer, for a client without streaming."""
        reply = self._reply
        parts: list[JsonValue] = []
        if reply.thinking:
            parts.append({"text": reply.thinking, "thought": True})
        if reply.text:
            parts.append({"text": reply.text})
        parts += [self._call(number) for number in range(len(reply.calls))]
        return self._body(parts, finish=reply.finish or "STOP")

    def _call(self, number: int) -> JsonValue:
        call = self._reply.calls[number]
        return {"functionCall": {"id": call.call_id, "name": call.name, "args": loads(call.text)}}

    def _chunk(self, parts: list[JsonValue], *, finish: str | None = None) -> str:
        return f"data: {dumps(self._body(parts, finish=finish))}\r\n\r\n"

    def _body(self, parts: list[JsonValue], *, finish: str | None) -> JsonValue:
        reply = self._reply
        candidate: dict[str, JsonValue] = {"content": {"role": "model", "parts": parts}, "index": 0}
        if finish is not None:
            candidate["finishReason"] = finish
        usage: JsonValue = {
            "promptTokenCount": reply.input_tokens,
            "cachedContentTokenCount": reply.cached_tokens,
            "candidatesTokenCount": reply.output_tokens,
            "totalTokenCount": reply.input_tokens + reply.output_tokens,
        }
        return {
            "candidates": [candidate],
            "usageMetadata": usage,
            "modelVersion": self._model,
            "responseId": "response-1",
        }


def refused(refusal: Refusal) -> JsonValue:
    """Return the body of an error; for a wrong key, with Google's reason."""
    status = refusal.kind or _STATUSES.get(refusal.status, "INTERNAL")
    error: dict[str, JsonValue] = {"code": refusal.status, "message": refusal.message, "status": status}
    if refusal.status == 401:
        error["details"] = [
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"},
        ]
    return {"error": error}
