"""Values that are cheap to define: the standard ``dataclass``, which here compiles nothing until a value is made.

A start of Keryx defines more than two hundred values and makes a few dozen of them. The standard decorator compiles six
methods for each, and that was nearly half of what a start took. Here ``__init__`` is compiled when the first value is
made, and all classes share the other methods. The rest is the standard library's: fields, ``replace``, ``asdict`` and
``match`` work as ever, and to type checkers this *is* ``dataclasses.dataclass``.
"""

import dataclasses
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        cls: type[T] | None = None,
        /,
        *,
        frozen: bool = False,
        slots: bool = False,
        kw_only: bool = False,
        **others: bool,
    ) -> Callable[[type[T]], type[T]] | type[T]:
        """Make a dataclass of a class; one that is not frozen or has no slots is left to the standard library."""
        if cls is not None or others or not (frozen and slots):
            return dataclasses.dataclass(cls, frozen=frozen, slots=slots, kw_only=kw_only, **others)

        def decorate(plain: type[T]) -> type[T]:
            own = vars(plain)
            made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(plain)
            made.__init__ = _init_when_needed(made)
            for name, method in _SHARED.items():
                if name not in own:
                    setattr(made, name, method)
            return made

        return decorate


def _init_when_needed(kind: Any) -> Callable[..., None]:
    def __init__(self: object, *args: object, **values: object) -> None:  # noqa: N807 - becomes a method
        kind.__init__ = _compile_init(kind)
        kind.__init__(self, *args, **values)

    return __init__


def _compile_init(kind: type) -> Callable[..., None]:
    """Return the method that the standard library would have made, except that it fills the slots directly."""
    scope: dict[str, Any] = {"MISSING": dataclasses.MISSING}
    positional: list[str] = []
    by_name: list[str] = []
    body: list[str] = []
    for field in dataclasses.fields(kind):
        name = field.name
        scope |= {f"set_{name}": getattr(kind, name).__set__, f"default_{name}": field.default}
        value, default = name, ""
        if field.default_factory is not dataclasses.MISSING:
            scope[f"make_{name}"] = field.default_factory
            value, default = f"make_{name}() if {name} is MISSING else {name}", "=MISSING"
        elif field.default is not dataclasses.MISSING:
            default = f"=default_{name}"
        (by_name if field.kw_only else positional).append(name + default)
        body.append(f" set_{name}(self, {value})")
    if hasattr(kind, "__post_init__"):
        body.append(" self.__post_init__()")
    parameters = ", ".join(["self", *positional, *(["*", *by_name] if by_name else [])])
    exec(f"def __init__({parameters}):\n" + "\n".join(body or [" pass"]), scope)  # noqa: S102 - of our own names
    made: Callable[..., None] = scope["__init__"]
    made.__qualname__ = f"{kind.__qualname__}.__init__"
    return made


@cache
def _compared(kind: Any) -> Callable[[object], object]:
    """Return what tells the values of a class apart."""
    names = [field.name for field in dataclasses.fields(kind) if field.compare]
    return attrgetter(*names) if names else lambda _: ()


class _Shared:
    """The methods that need not be compiled for each class."""

    def __eq__(self: Any, other: Any) -> bool:
        if other.__class__ is self.__class__:
            compared = _compared(self.__class__)
            return compared(self) == compared(other)
        return NotImplemented

    def __hash__(self: Any) -> int:
        return hash(_compared(self.__class__)(self))

    @recursive_repr()
    def __repr__(self: Any) -> str:
        shown = [
            f"{each.name}={getattr(self, each.name)!r}" for each in dataclasses.fields(self) if each.repr
        ]
        return f"{self.__class__.__qualname__}({', '.join(shown)})"

    def __setattr__(self, name: str, value: object) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    def __getstate__(self: Any) -> list[object]:
        return [getattr(self, field.name) for field in dataclasses.fields(self)]

    def __setstate__(self: Any, state: list[object]) -> None:
        for field, value in zip(dataclasses.fields(self), state, strict=True):
            object.__setattr__(self, field.name, value)


_SHARED = {name: method for name, method in vars(_Shared).items() if callable(method)}
