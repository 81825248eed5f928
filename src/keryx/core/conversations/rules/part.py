"""The parts of a message.

A part that can be constructed can be stored and read back unchanged; the constructors refuse all other values.
"""

import re
from typing import Final, TypeAlias

from keryx.core.values.json_value import JsonValue, check_json
from keryx.core.values.turn_states import STEP_EFFECTS, StepEffect
from keryx.errors import InvalidValue
from keryx.values import dataclass

IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The image types that models accept."""

_BLOB: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    """Text that was said."""

    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise InvalidValue(f"text of a text part must be text, not {type(self.text).__name__}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingPart:
    """A model's reasoning before its answer; ``signature`` is the provider's proof, sent back unchanged."""

    text: str
    signature: str | None = None

    def __post_init__(self) -> None:
        check_text("thinking part", text=self.text)
        check_optional_text("thinking part", signature=self.signature)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallPart:
    """A call by the assistant; ``arguments`` is an object, or the model's raw text if that is not an object."""

    call_id: str
    name: str
    arguments: JsonValue
    effect: StepEffect | None = None

    def __post_init__(self) -> None:
        check_text("tool call", call_id=self.call_id, name=self.name)
        check_json(self.arguments, where="arguments of a tool call")
        if self.effect is not None and self.effect not in STEP_EFFECTS:
            raise InvalidValue(
                f"effect {self.effect!r} of a tool call is not one of {', '.join(STEP_EFFECTS)}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultPart:
    """The result of a tool call."""

    call_id: str
    name: str
    output: JsonValue
    is_error: bool = False

    def __post_init__(self) -> None:
        check_text("tool result", call_id=self.call_id, name=self.name)
        check_json(self.output, where="output of a tool result")
        if not isinstance(self.is_error, bool):
            raise InvalidValue("is_error of a tool result must be a bool")


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaPart:
    """An image, sound or file: stored as a blob (its SHA-256 in hex) or referenced by a URL."""

    media_type: str
    blob: str | None = None
    url: str | None = None
    name: str | None = None
    size_bytes: int | None = None
    detail: str | None = None

    def __post_init__(self) -> None:
        check_text("media part", media_type=self.media_type)
        check_optional_text("media part", blob=self.blob, url=self.url, name=self.name, detail=self.detail)
        if (self.blob is None) == (self.url is None):
            raise InvalidValue("a media part has either a blob or a url: give exactly one of them")
        if self.blob is not None and not _BLOB.fullmatch(self.blob):
            raise InvalidValue(f"blob {self.blob!r} of a media part is not a SHA-256 in lower-case hex")
        if self.size_bytes is not None:
            check_count("media part", size_bytes=self.size_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownPart:
    """A part that this version cannot read, kept unchanged: it is damaged, or a newer version wrote it."""

    raw: dict[str, JsonValue]

    def __post_init__(self) -> None:
        if not isinstance(self.raw, dict):
            raise InvalidValue("raw of an unknown part must be a dict")
        check_json(self.raw, where="an unknown part")


Part: TypeAlias = TextPart | ThinkingPart | ToolCallPart | ToolResultPart | MediaPart | UnknownPart


def check_text(where: str, **values: str) -> None:
    """Raise InvalidValue unless every value is text."""
    for name, value in values.items():
        if not isinstance(value, str):
            raise InvalidValue(f"{name} of a {where} must be text, not {type(value).__name__}")


def check_optional_text(where: str, **values: str | None) -> None:
    """Raise InvalidValue unless every value is text or None."""
    for name, value in values.items():
        if value is not None and not isinstance(value, str):
            raise InvalidValue(f"{name} of a {where} must be text or None, not {type(value).__name__}")


def check_count(where: str, **values: int) -> None:
    """Raise InvalidValue unless every value is a whole number from 0 on."""
    for name, value in values.items():
        if type(value) is not int or value < 0:
            raise InvalidValue(f"{name} of a {where} must be a whole number from 0 on, not {value!r}")
