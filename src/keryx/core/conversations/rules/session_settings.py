"""The model settings and the personality stored with a session.

A setting that is None comes from the configuration when a turn runs.
"""

from dataclasses import asdict, field, fields
from json import dumps, loads
from typing import Final, Literal, get_args

from keryx.core.values.json_value import JsonValue, check_json
from keryx.errors import InvalidValue
from keryx.values import dataclass

ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]
REASONING_EFFORTS: Final[tuple[ReasoningEffort, ...]] = get_args(ReasoningEffort)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """The settings of a session's model; ``extra`` goes to the provider unchanged."""

    model: str | None = None
    temperature: float | None = None
    tokens_max: int | None = None
    reasoning_effort: ReasoningEffort | None = None
    extra: dict[str, JsonValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.model is not None and not _has_text(self.model):
            raise InvalidValue(f"model {self.model!r}: give the model's name, or leave it out")
        if self.temperature is not None and not (_is_number(self.temperature) and 0 <= self.temperature <= 2):
            raise InvalidValue(f"temperature {self.temperature!r}: give a number from 0 to 2")
        if self.tokens_max is not None and (type(self.tokens_max) is not int or self.tokens_max < 1):
            raise InvalidValue(f"tokens_max {self.tokens_max!r}: give a whole number from 1 on")
        if self.reasoning_effort is not None and self.reasoning_effort not in REASONING_EFFORTS:
            raise InvalidValue(
                f"reasoning_effort {self.reasoning_effort!r}: use one of {', '.join(REASONING_EFFORTS)}"
            )
        if not isinstance(self.extra, dict):
            raise InvalidValue("extra model settings must be an object")
        check_json(self.extra, where="extra model settings")


@dataclass(frozen=True, slots=True, kw_only=True)
class Personality:
    """How the agent speaks in a session: a name by which people choose the personality, and the text for the agent."""

    name: str
    text: str

    def __post_init__(self) -> None:
        for what, value in (("name", self.name), ("text", self.text)):
            if not _has_text(value):
                raise InvalidValue(f"the personality's {what} is empty; give it one")


def encode_model_settings(settings: ModelSettings) -> str:
    """Return the stored text of ``settings``: JSON with the fields that are set."""
    return _text(asdict(settings) | {"extra": settings.extra or None})


def decode_model_settings(text: str) -> ModelSettings:
    """Return the settings that ``encode_model_settings`` wrote, or raise InvalidValue."""
    value = _object(text, "model settings", ModelSettings)
    return ModelSettings(**value)  # type: ignore[arg-type]  # The constructor checks the types.


def encode_personality(personality: Personality) -> str:
    """Return the stored text of ``personality``."""
    return _text(asdict(personality))


def decode_personality(text: str) -> Personality:
    """Return the personality that ``encode_personality`` wrote, or raise InvalidValue."""
    value = {"name": "", "text": ""} | _object(text, "personality", Personality)
    return Personality(**value)  # type: ignore[arg-type]  # The constructor checks the types.


def _text(values: dict[str, JsonValue]) -> str:
    known = {name: value for name, value in values.items() if value is not None}
    return dumps(known, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def _object(text: str, what: str, kind: type[ModelSettings | Personality]) -> dict[str, JsonValue]:
    try:
        value = loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidValue(f"the stored {what} cannot be read: {text[:80]!r}; set it again")
    unknown = value.keys() - {each.name for each in fields(kind)}
    if unknown:
        raise InvalidValue(f"the stored {what} has unknown fields {sorted(unknown)}; set it again")
    return value


def _has_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
