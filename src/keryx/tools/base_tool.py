"""The base class of Keryx's own tools.

A tool declares its parameters once. The JSON schema for the model and the checks of a call's arguments follow from
them: a tool never gets an argument that was not declared, or of another kind.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import Final, Literal, TypeAlias

from keryx.core.people.rules.toolset import GENERAL
from keryx.core.turns.rules.tool_offer import ToolOffer
from keryx.core.values.json_value import JsonValue
from keryx.core.values.turn_states import StepEffect
from keryx.errors import InvalidValue, NotAllowed, NotFound, ToolFailed
from keryx.tools.tool import Tool, ToolCall
from keryx.values import dataclass

Kind = Literal["string", "integer", "boolean", "strings"]
Argument: TypeAlias = str | int | bool | list[str]

NUMBER_DIGITS_MAX: Final = 20
_DESCRIPTIONS: Final[Mapping[Kind, str]] = {
    "string": "a text",
    "integer": "a whole number",
    "boolean": "true or false",
    "strings": "a list of texts",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a tool: its purpose, and the values it takes."""

    help: str = ""
    kind: Kind = "string"
    required: bool = False
    may_be_empty: bool = False
    """Whether a required text may be blank."""
    choices: Sequence[str] = ()
    """The only texts it takes; empty for any text."""
    low: int | None = None
    high: int | None = None

    @property
    def schema(self) -> dict[str, JsonValue]:
        """The JSON schema of the parameter."""
        schema: dict[str, JsonValue] = {"type": self.kind}
        if self.kind == "strings":
            schema = {"type": "array", "items": {"type": "string"}}
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.help:
            schema["description"] = self.help
        bounds = {"minimum": self.low, "maximum": self.high}
        return schema | {name: bound for name, bound in bounds.items() if bound is not None}

    def read(self, name: str, value: JsonValue) -> Argument:
        """Return the argument, or raise ``ToolFailed`` with the values that are allowed."""
        match self.kind, value:
            case "string", str():
                return self._read_text(name, value)
            case "integer", int() | float() | str() if _is_number(value):
                return check_bounds(name, int(value), low=self.low, high=self.high)
            case "boolean", bool():
                return value
            case "strings", list():
                texts = [each for each in value if isinstance(each, str) and each.strip()]
                if len(texts) == len(value):
                    return texts
            case _:
                pass
        raise ToolFailed(f"{name!r} must be {_DESCRIPTIONS[self.kind]}.")

    def missing(self, name: str) -> ToolFailed:
        """Return the error for a call that lacks the argument."""
        return ToolFailed(f"Give {name!r}: {_DESCRIPTIONS[self.kind]}. {self.help}".rstrip())

    def _read_text(self, name: str, value: str) -> str:
        if self.choices and value not in self.choices:
            raise ToolFailed(f"There is no {name} {value[:40]!r}. Use one of {', '.join(self.choices)}.")
        if self.required and not self.may_be_empty and not value.strip():
            raise ToolFailed(f"{name!r} is blank; give a text.")
        return value


def check_bounds(name: str, value: int, *, low: int | None = None, high: int | None = None) -> int:
    """Return a number that lies between two bounds, or raise ``ToolFailed``."""
    if low is not None and value < low:
        raise ToolFailed(f"{name!r} must be at least {low}.")
    if high is not None and value > high:
        raise ToolFailed(f"{name!r} must be at most {high}.")
    return value


@dataclass(frozen=True, slots=True)
class Arguments:
    """The checked arguments of one call."""

    given: Mapping[str, Argument]
    parameters: Mapping[str, Parameter]

    def text(self, name: str, default: str = "") -> str:
        """Return a text."""
        value = self.given.get(name, default)
        assert isinstance(value, str), f"{name} is declared as a text"
        return value

    def needed_text(self, name: str) -> str:
        """Return a text that this call needs, although other calls of the tool do not."""
        value = self.text_or_none(name)
        if value is None:
            raise self.parameters[name].missing(name)
        return value

    def text_or_none(self, name: str) -> str | None:
        """Return a text, or None if it is missing or empty; a blank text is refused."""
        value = self.text(name)
        if value and not value.strip():
            raise ToolFailed(f"{name!r} is blank; give a text.")
        return value or None

    def whole(self, name: str, default: int, *, low: int | None = None, high: int | None = None) -> int:
        """Return a whole number; the bounds are those that the schema does not state."""
        value = self.given.get(name, default)
        assert isinstance(value, int), f"{name} is declared as a whole number"
        return check_bounds(name, value, low=low, high=high)

    def whole_or_none(self, name: str, *, low: int | None = None, high: int | None = None) -> int | None:
        """Return a whole number, or None if it is missing."""
        return self.whole(name, 0, low=low, high=high) if name in self.given else None

    def needed_number(self, name: str, *, high: int) -> int:
        """Return a number from 1 on that this call needs, although other calls of the tool do not."""
        if name not in self.given:
            raise self.parameters[name].missing(name)
        return self.whole(name, 0, low=1, high=high)

    def flag(self, name: str) -> bool:
        """Return whether a flag is set; it is not if the argument is missing."""
        return bool(self.given.get(name, False))

    def texts(self, name: str) -> list[str] | None:
        """Return a list of texts, or None if it is missing."""
        value = self.given.get(name)
        assert value is None or isinstance(value, list), f"{name} is declared as a list of texts"
        return value


class BaseTool(Tool):
    """A tool that declares its name, its effect and its parameters."""

    name: str
    description: str
    effect: StepEffect = "pure"
    toolset: str = GENERAL
    pure_actions: frozenset[str] = frozenset()
    """The values of its argument ``action`` with which it changes nothing."""
    parameters: Mapping[str, Parameter] = {}

    @cached_property
    def offer(self) -> ToolOffer:  # type: ignore[override]  # A tool is never given another offer.
        """The description for the agent; every turn asks for it, and it never changes."""
        schema: dict[str, JsonValue] = {
            "type": "object",
            "properties": {name: each.schema for name, each in self.parameters.items()},
            "required": [name for name, each in self.parameters.items() if each.required],
            "additionalProperties": False,
        }
        return ToolOffer(
            name=self.name,
            description=self.description,
            parameters=schema,
            effect=self.effect,
            toolset=self.toolset,
            pure_actions=self.pure_actions,
        )

    async def run(self, call: ToolCall) -> JsonValue:
        """Check the arguments, run the tool and return its result; each refusal becomes ``ToolFailed``."""
        try:
            return await self.work(call, self.arguments(call))
        except (InvalidValue, NotAllowed, NotFound) as error:
            raise ToolFailed(str(error)) from error

    @abstractmethod
    async def work(self, call: ToolCall, given: Arguments) -> JsonValue:
        """Run the tool and return its result, or raise ``ToolFailed`` or an error that ``run`` turns into it."""

    def arguments(self, call: ToolCall) -> Arguments:
        """Return the arguments of a call, or raise ``ToolFailed``; null counts as missing."""
        given = {name: value for name, value in call.arguments.items() if value is not None}
        for name in given:
            if name not in self.parameters:
                raise ToolFailed(f"{self.name} has no argument {name[:40]!r}; {self._hint(name)}")
        for name, parameter in self.parameters.items():
            if parameter.required and name not in given:
                raise parameter.missing(name)
        read = {name: self.parameters[name].read(name, value) for name, value in given.items()}
        return Arguments(read, self.parameters)

    def _hint(self, name: str) -> str:
        near = get_close_matches(name, self.parameters, n=1)
        if near:
            return f"did you mean {near[0]!r}?"
        return f"it takes {', '.join(self.parameters) or 'none'}."


def _is_number(value: float | str) -> bool:
    """Return whether a value is a whole number: some models send numbers as texts, some providers as floats."""
    if isinstance(value, str):
        return value.isascii() and value.isdigit() and len(value) <= NUMBER_DIGITS_MAX
    return not isinstance(value, bool) and (isinstance(value, int) or value.is_integer())
