"""The rows of the table of settings, and the values that the sources give them.

Subjects and plug-ins define their own rows. ``config_load`` collects the rows and reads the values.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, cast

from keryx.config.readers import Reader, T
from keryx.values import dataclass

T_co = TypeVar("T_co", covariant=True)

PREFIX = "KERYX_"
HOME_VARIABLE = "KERYX_HOME"
"""The variable with the folder of all profiles. It is not a setting."""
Place = Literal["anywhere", "own", "environment", "secret"]
"""``own``: not in a project's file, because its author could redirect the owner's conversations."""


def variable_of(name: str) -> str:
    """Return the environment variable for the name of a setting, or of a part of the table."""
    return PREFIX + name.upper().replace(".", "_").replace("-", "_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting(Generic[T_co]):
    """One row of the table: its name, reader and default, and where it may be written."""

    name: str
    read: Reader[T_co]
    default: T_co
    help: str
    place: Place = "anywhere"
    check_choice: Callable[[str], object] | None = None
    """Checks the part in angle brackets."""
    check_platforms: Callable[[Any, Collection[str]], object] | None = None
    """Checks that the platforms in the part in angle brackets, or else in the value, are installed."""
    is_path: bool = False
    """A relative path, or the program of a command line, starts at the folder of the file with the setting."""
    holds_pairs: bool = False
    """In a file, the value may be a mapping; it is read as ``NAME=value``."""
    redact: Callable[[str], str] = str
    """Removes a password from a value that is shown. A value that this changes is a secret."""

    @property
    def parts(self) -> list[str]:
        """The keys in a file."""
        return self.name.split(".")

    @property
    def variable(self) -> str | None:
        """The environment variable that sets it; None for a name with a chosen part."""
        return None if self.check_choice else variable_of(self.name)

    def full_name(self, choice: str | None) -> str:
        """Return the name with the owner's choice for the part in angle brackets."""
        return ".".join(choice or "" if part.startswith("<") else part for part in self.parts)

    def resolved(self, value: object, folder: Path) -> object:
        """Return a path resolved from ``folder``, and any other value unchanged."""
        if not self.is_path:
            return value
        if isinstance(value, tuple) and value and "/" in value[0]:
            # Without a slash, the program is searched on the PATH.
            return (str(folder / Path(value[0]).expanduser()), *value[1:])
        if not isinstance(value, str) or "://" in value:
            return value
        return str(folder / Path(value).expanduser())


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The value of a setting from the strongest source; ``origin`` is a file and its line, or a variable."""

    setting: Setting[Any]
    choice: str | None
    """The owner's choice for the part in angle brackets."""
    value: object
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The values by name. A setting that no source sets has its default."""

    found: Mapping[str, Found] = field(repr=False)

    def of(self, setting: Setting[T], choice: str | None = None) -> T:
        """Return the value of a setting, or its default."""
        found = self.found.get(setting.full_name(choice))
        return setting.default if found is None else cast(T, found.value)

    def origin_of(self, setting: Setting[Any]) -> str:
        """Return the origin of a setting's value."""
        found = self.found.get(setting.name)
        return "default" if found is None else found.origin

    def choices_of(self, setting: Setting[Any]) -> list[tuple[str, Found]]:
        """Return the full names and values of a setting with a chosen part, in the order of the names."""
        return sorted(
            ((name, found) for name, found in self.found.items() if found.setting is setting),
            key=lambda pair: pair[0],
        )

    def by_choice(self, setting: Setting[T]) -> dict[str, T]:
        """Return the values of a setting with a chosen part, by that part."""
        return {found.choice or "": cast(T, found.value) for _, found in self.choices_of(setting)}

    def under(self, section: str) -> dict[str, Found]:
        """Return the values of the setting ``section`` and of those below it."""
        return {
            name: found
            for name, found in self.found.items()
            if name == section or name.startswith(f"{section}.")
        }
