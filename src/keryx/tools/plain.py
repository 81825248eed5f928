"""A tool whose arguments are declared once: as the schema the agent is told, and as what they are checked against."""

from abc import abstractmethod
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Literal

from keryx.domain.json_value import JsonValue
from keryx.tools.face import Face
from keryx.tools.tool import ToolFailed, Use
from keryx.values import dataclass

Kind = Literal["string", "integer", "boolean"]
_WORDS: Mapping[Kind, str] = {
    "string": "a text",
    "integer": "a whole number",
    "boolean": "true or false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One argument: what it is for, and what it may be."""

    help: str
    kind: Kind = "string"
    required: bool = False
    may_be_empty: bool = False
    """Whether a required text may say nothing."""
    low: int | None = None
    high: int | None = None

    @property
    def schema(self) -> dict[str, JsonValue]:
        """What the agent is told."""
        schema: dict[str, JsonValue] = {"type": self.kind, "description": self.help}
        bounds = {"minimum": self.low, "maximum": self.high}
        return schema | {name: bound for name, bound in bounds.items() if bound is not None}

    def read(self, name: str, value: JsonValue) -> str | int | bool:
        """Return the argument, or raise ``ToolFailed`` with what it must be."""
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # some providers write every number so
        types = {"string": str, "integer": int, "boolean": bool}
        if type(value) is not types[self.kind]:
            raise ToolFailed(f"{name!r} must be {_WORDS[self.kind]}.")
        assert isinstance(value, (str, int))
        if isinstance(value, str) and self.required and not self.may_be_empty and not value.strip():
            raise ToolFailed(f"{name!r} says nothing; give a text.")
        if self.kind == "integer":
            assert isinstance(value, int)
            if self.low is not None and value < self.low:
                raise ToolFailed(f"{name!r} must be at least {self.low}.")
            if self.high is not None and value > self.high:
                raise ToolFailed(f"{name!r} must be at most {self.high}.")
        return value


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one call, checked."""

    given: Mapping[str, str | int | bool]

    def text(self, name: str, default: str = "") -> str:
        """Return a text."""
        value = self.given.get(name, default)
        assert isinstance(value, str), f"{name} is declared as a text"
        return value

    def whole(self, name: str, default: int) -> int:
        """Return a whole number."""
        value = self.given.get(name, default)
        assert isinstance(value, int), f"{name} is declared as a whole number"
        return value

    def flag(self, name: str) -> bool:
        """Return whether something is wanted; what is not said is not."""
        return bool(self.given.get(name, False))


class PlainTool(Face):
    """A tool that declares its parameters."""

    parameters: Mapping[str, Parameter] = {}

    @property
    def properties(self) -> dict[str, JsonValue]:
        """The schemas of its arguments, by name."""
        return {name: each.schema for name, each in self.parameters.items()}

    @property
    def required(self) -> list[str]:
        """The arguments that must be given."""
        return [name for name, each in self.parameters.items() if each.required]

    async def run(self, use: Use) -> JsonValue:
        """Check the arguments, do it and return what came of it, or raise ``ToolFailed``."""
        return await self.work(use, self.arguments(use))

    @abstractmethod
    async def work(self, use: Use, given: Arguments) -> JsonValue:
        """Do it and return what came of it, or raise ``ToolFailed``."""

    def arguments(self, use: Use) -> Arguments:
        """Return the arguments of a call, or raise ``ToolFailed``; null counts as not given."""
        given = {name: value for name, value in use.arguments.items() if value is not None}
        for name in given:
            if name not in self.parameters:
                near = get_close_matches(name, self.parameters, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(self.parameters)}."
                raise ToolFailed(f"{self.name} has no argument {name[:40]!r}; {hint}")
        for name, parameter in self.parameters.items():
            if parameter.required and name not in given:
                raise ToolFailed(f"Give {name!r}: {_WORDS[parameter.kind]}. {parameter.help}")
        return Arguments({name: self.parameters[name].read(name, value) for name, value in given.items()})
