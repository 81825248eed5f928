"""Our messages as a model's provider reads them, and what it answers as ours. Pure.

What is sent: the instructions, the conversation, and last the context block, which changes from turn to turn; so what
was sent before stays the beginning of what is sent next, and providers need not read it again. Every call is followed
by its one result, whatever order they are stored in. What a provider must get back untouched (signatures, ids) is kept
as the ``signature`` of a thinking part and goes to that provider only: ``answer_of`` then ``model_messages`` is the
identity on everything a provider reads.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime
from json import dumps, loads
from typing import Any, Final, TypeAlias, cast

from pydantic_ai import messages as wire

from keryx.agents.agent import Said
from keryx.domain.call_pairs import NO_RESULT, CallPair, pair_calls, told_stray
from keryx.domain.cover import Cover
from keryx.domain.json_value import JsonValue, check_json
from keryx.domain.message import (
    MediaPart,
    Message,
    NewMessage,
    Part,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    text_of,
)
from keryx.domain.part import IMAGES
from keryx.domain.prompt import spoken_by
from keryx.values import dataclass

Spoken: TypeAlias = Said | NewMessage
"""What was said before the turn, and in it."""

BEGINNING: Final = "(The conversation begins here.)"
UNREADABLE: Final = "[something this version cannot read]"
NOT_SHOWN: Final = {
    False: "[{what}: you cannot see this, because it is too large or not in the store]",
    True: "[{what}: you cannot see this, because it is no image, PDF or text]",
}
"""What a model is told of a content, by whether there is one."""
FILES: Final = frozenset({"application/pdf"})

_PLAIN_IDS: Final = frozenset({"anthropic", "bedrock"})
"""Who refuses call ids with anything but letters, digits, ``_`` and ``-``."""
_NOT_PLAIN: Final = re.compile(r"[^A-Za-z0-9_-]")
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_NO_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""Times are not sent; a constant keeps the mapping pure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Framing:
    """What stands around a conversation, and for whom it is put into words."""

    instructions: str
    context: str
    provider: str
    """The system that will read it; thinking of another one is left out."""
    is_group: bool = False
    """Whether several people speak: then each message says who."""
    request: str | None = None
    """What Keryx itself asks at the end, in a turn that answers nobody."""
    marks_cache: bool = False
    """Whether the provider keeps nothing for the next question unless told up to where."""


def model_messages(
    spoken: Sequence[Spoken], framing: Framing, *, media: Mapping[str, bytes] | None = None
) -> list[wire.ModelMessage]:
    """Return what the provider is sent; ``media`` holds the contents of blobs, the others are only named."""
    return _Conversation(framing, media or {}).put(spoken)


def answer_of(response: wire.ModelResponse) -> tuple[Part, ...]:
    """Return what a model said, thought and called, with what its provider wants back."""
    return tuple(part for each in response.parts for part in _parts_of(each))


@dataclass(slots=True)
class _Conversation:
    """Puts one conversation into the provider's words."""

    framing: Framing
    media: Mapping[str, bytes]
    sent: list[wire.ModelMessage] = field(default_factory=list)

    def put(self, spoken: Sequence[Spoken]) -> list[wire.ModelMessage]:
        paired = pair_calls(spoken, spelled=_plain if self.framing.provider in _PLAIN_IDS else _clean)
        for number, each in enumerate(spoken):
            if isinstance(each, Cover):
                summary = (
                    f"Summary of messages {each.first_seq} to {each.last_seq}, which are left out here:\n"
                )
                self._hear(wire.UserPromptPart(_clean(summary + each.summary), timestamp=_NO_TIME))
            elif each.role == "assistant":
                self._answer(each.parts, paired.pairs[number])
            elif each.role != "tool":
                self._hear(self._said(each))
            self._hear(*(_stray(result) for result in paired.strays[number]))
        if not self.sent or isinstance(self.sent[0], wire.ModelResponse):
            # A conversation begins with a person for some providers.
            self.sent.insert(0, wire.ModelRequest(parts=[_said_by_keryx(BEGINNING)], timestamp=_NO_TIME))
        if self.framing.request is not None:
            self._hear(_said_by_keryx(self.framing.request))
        self._mark_for_cache()
        if self.framing.context:
            context = _clean(self.framing.context)
            self._hear(wire.SystemPromptPart(context, timestamp=_NO_TIME, scope="request"))
        for message in self.sent:
            if isinstance(message, wire.ModelRequest):
                message.instructions = self.framing.instructions
        return self.sent

    def _hear(self, *parts: wire.ModelRequestPart) -> None:
        """Add to what the model is told next."""
        if not parts:
            return
        last = self.sent[-1] if self.sent else None
        if isinstance(last, wire.ModelRequest):
            last.parts = [*last.parts, *parts]
        else:
            self.sent.append(wire.ModelRequest(parts=list(parts), timestamp=_NO_TIME))

    def _mark_for_cache(self) -> None:
        """Mark up to where this is the beginning of what is sent next; nothing can be marked behind no words."""
        heard = self.sent[-1]
        if not self.framing.marks_cache or isinstance(heard, wire.ModelResponse):
            return
        last = heard.parts[-1]
        if not isinstance(last, wire.UserPromptPart) or last.content:
            self._hear(wire.UserPromptPart([wire.CachePoint()], timestamp=_NO_TIME))

    def _answer(self, parts: Sequence[Part], pairs: Sequence[CallPair]) -> None:
        """Add what the model answered, and the results of its calls right behind it."""
        answered = list(self._answered(parts, pairs))
        last = self.sent[-1] if self.sent else None
        if answered and isinstance(last, wire.ModelResponse):
            last.parts = [*last.parts, *answered]
        elif answered:
            self.sent.append(wire.ModelResponse(parts=answered, timestamp=_NO_TIME))
        self._hear(*map(_returned, pairs))

    def _answered(self, parts: Sequence[Part], pairs: Sequence[CallPair]) -> Iterator[wire.ModelResponsePart]:
        calls = iter(pairs)
        proof: dict[str, Any] = {}
        for part in parts:
            match part:
                case TextPart() if part.text:
                    yield wire.TextPart(_clean(part.text), **proof)
                case ToolCallPart():
                    pair = next(calls)
                    yield wire.ToolCallPart(part.name, _arguments(part.arguments), pair.call_id, **proof)
                case ThinkingPart():
                    kept = _proof(part, provider=self.framing.provider)
                    if kept is not None and "next" in kept:
                        proof = {"provider_name": kept["by"], **_fields(kept["next"])}
                        continue
                    if kept is not None:
                        yield wire.ThinkingPart(_clean(part.text), provider_name=kept["by"], **_fields(kept))
                case MediaPart():
                    yield wire.TextPart(_named(part))
                case _:
                    continue
            proof = {}

    def _said(self, message: Message | NewMessage) -> wire.UserPromptPart:
        """What a person said, or Keryx reported; in a group with the name of who said it."""
        content: list[wire.UserContent] = [
            piece for part in message.parts if (piece := self._piece(part)) is not None
        ]
        if message.role == "system":
            content.insert(0, "Keryx reports:")
        elif self.framing.is_group and message.author:
            content = [_clean(spoken_by(message.author, text_of(message.parts))), *_without_text(content)]
        if len(content) == 1 and isinstance(content[0], str):
            return wire.UserPromptPart(content[0], timestamp=_NO_TIME)
        return wire.UserPromptPart(content or [UNREADABLE], timestamp=_NO_TIME)

    def _piece(self, part: Part) -> wire.UserContent | None:
        match part:
            case TextPart():
                return _clean(part.text)
            case MediaPart(url=str(url)) if url.startswith("data:"):
                return _data(part, url)
            case MediaPart(url=str(url)) if part.media_type.startswith("image/"):
                return wire.ImageUrl(url=url)
            case MediaPart(blob=str(blob)) if blob in self.media and part.media_type in IMAGES | FILES:
                return wire.BinaryContent(data=self.media[blob], media_type=part.media_type)
            case MediaPart(blob=str(blob)) if blob in self.media and part.media_type.startswith("text/"):
                return _clean(f"{_named(part)}\n{self.media[blob].decode('utf-8', 'replace')}")
            case MediaPart():
                return self._not_shown(part)
            case ThinkingPart() | ToolCallPart() | ToolResultPart():
                return None
            case _:
                return UNREADABLE

    def _not_shown(self, part: MediaPart) -> str:
        if part.blob is None:
            return _named(part)
        return _clean(NOT_SHOWN[part.blob in self.media].format(what=part.name or part.media_type))


def _returned(pair: CallPair) -> wire.ToolReturnPart:
    result = pair.result
    return wire.ToolReturnPart(
        tool_name=pair.call.name,
        content=NO_RESULT if result is None else _text(result.output),
        tool_call_id=pair.call_id,
        timestamp=_NO_TIME,
        outcome="failed" if result is None or result.is_error else "success",
    )


def _stray(result: ToolResultPart) -> wire.UserPromptPart:
    """A result whose call is not shown, for example because a summary stands for it."""
    return _said_by_keryx(told_stray(result, _text(result.output)))


def _said_by_keryx(text: str) -> wire.UserPromptPart:
    return wire.UserPromptPart(_clean(text), timestamp=_NO_TIME)


def _without_text(content: Sequence[wire.UserContent]) -> list[wire.UserContent]:
    return [piece for piece in content if not isinstance(piece, str)]


def _named(part: MediaPart) -> str:
    return _clean(
        f"[{part.name or part.media_type}]" if part.url is None else f"[{part.media_type}: {part.url}]"
    )


def _data(part: MediaPart, url: str) -> wire.UserContent:
    with suppress(ValueError):
        content = wire.BinaryContent.from_data_uri(url)
        if content.media_type in IMAGES | FILES:
            return content
    return _named(MediaPart(media_type=part.media_type, url="data:…", name=part.name))


def _arguments(arguments: JsonValue) -> str | dict[str, Any]:
    return arguments if isinstance(arguments, dict) else _text(arguments)


def _text(value: JsonValue) -> str:
    return _clean(
        value if isinstance(value, str) else dumps(value, ensure_ascii=False, separators=(",", ":"))
    )


def _plain(call_id: str) -> str:
    return _NOT_PLAIN.sub("_", call_id)


def _clean(text: str) -> str:
    """Return text that UTF-8 can carry: half of a surrogate pair cannot be sent."""
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)


def _parts_of(part: wire.ModelResponsePart) -> Iterator[Part]:
    match part:
        case wire.TextPart():
            yield from _proof_of_next(part)
            if part.content:
                yield TextPart(text=part.content)
        case wire.ThinkingPart():
            if part.content or part.signature:
                fields = {"id": part.id, "sig": part.signature, "details": part.provider_details}
                yield ThinkingPart(text=part.content, signature=_signature(part.provider_name, fields))
        case wire.ToolCallPart():
            yield from _proof_of_next(part)
            yield ToolCallPart(
                call_id=part.tool_call_id,
                name=part.tool_name,
                arguments=_called_with(cast("str | dict[str, Any] | None", part.args)),
            )
        case _:
            return  # files and tools of the provider's own, which nobody asked for


def _proof_of_next(part: wire.TextPart | wire.ToolCallPart) -> Iterator[Part]:
    fields = _kept({"id": part.id, "details": part.provider_details})
    has_content = isinstance(part, wire.ToolCallPart) or part.content
    if fields and part.provider_name and has_content:
        yield ThinkingPart(text="", signature=_signature(part.provider_name, {"next": fields}))


def _called_with(arguments: str | dict[str, Any] | None) -> JsonValue:
    """Return the object a model's argument text stands for, or the text itself when it is none."""
    if not arguments:
        return {}
    try:
        value = loads(arguments) if isinstance(arguments, str) else arguments
        check_json(value, where="arguments")
    except (ValueError, RecursionError):
        return arguments if isinstance(arguments, str) else str(arguments)
    return cast(JsonValue, value) if isinstance(value, dict) else cast(str, arguments)


def _signature(provider: str | None, fields: Mapping[str, Any]) -> str | None:
    """Return what goes back to the provider as one text; None where no provider would know it again."""
    return None if provider is None else dumps({"by": provider, **_kept(fields)}, separators=(",", ":"))


def _kept(fields: Mapping[str, Any]) -> dict[str, Any]:
    kept = {}
    for name, value in fields.items():
        try:
            check_json(value, where=name)
        except ValueError:
            continue  # no provider reads back what JSON cannot say
        if value is not None:
            kept[name] = value
    return kept


def _proof(part: ThinkingPart, *, provider: str) -> dict[str, Any] | None:
    """Return what a thinking part keeps for this provider; None where it is another's, or nobody's."""
    try:
        kept = loads(part.signature or "")
    except ValueError:
        return None
    return kept if isinstance(kept, dict) and kept.get("by") == provider else None


def _fields(kept: Mapping[str, Any]) -> dict[str, Any]:
    names = {"id": "id", "sig": "signature", "details": "provider_details"}
    return {names[name]: value for name, value in kept.items() if name in names}
