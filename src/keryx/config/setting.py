"""A row of the table of settings: its name, how it is read, where it may be written, how it is shown.

Subjects and plug-ins each bring their own rows. ``config_load`` collects and reads them.
"""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from keryx.config.readers import Reader
from keryx.values import dataclass

T_co = TypeVar("T_co", covariant=True)

PREFIX = "KERYX_"
HOME_VARIABLE = "KERYX_HOME"
"""Says where the folders of all profiles are; no setting."""
Place = Literal["anywhere", "own", "environment", "secret"]
"""``own``: not in a project's file, because whoever wrote that could lead conversations elsewhere."""


def variable_of(name: str) -> str:
    """Return the environment variable for the name of a setting, or of a part of the table."""
    return PREFIX + name.upper().replace(".", "_").replace("-", "_")


def _as_it_is(value: str) -> str:
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting(Generic[T_co]):
    """One row of the table."""

    name: str
    read: Reader[T_co]
    default: T_co
    help: str
    place: Place = "anywhere"
    chosen: Callable[[str], object] | None = None
    """Checks the part in angle brackets."""
    platforms: Callable[[Any, Collection[str]], object] | None = None
    """Checks that each platform is installed which the part in angle brackets names, or else the value."""
    is_path: bool = False
    """A relative one counts from the folder of the file it stands in; so does the program of a command line."""
    holds_pairs: bool = False
    """In a file it may be written as names with values, which are read as ``NAME=value``."""
    shown: Callable[[str], str] = _as_it_is
    """Takes out what nobody should see; what it changes holds a secret."""

    @property
    def parts(self) -> list[str]:
        """The keys under which it stands in a file."""
        return self.name.split(".")

    @property
    def variable(self) -> str | None:
        """The environment variable that sets it; a chosen part cannot be spelled there."""
        return None if self.chosen else variable_of(self.name)

    def named(self, chosen: str | None) -> str:
        """Return the name with the owner's choice in it."""
        return ".".join(chosen or "" if part.startswith("<") else part for part in self.parts)

    def resolved(self, value: object, folder: Path) -> object:
        """Return a path as seen from ``folder``, and anything else as it is."""
        if not self.is_path:
            return value
        if isinstance(value, tuple) and value and "/" in value[0]:
            # A bare name is looked for on the path, as a shell would.
            return (str(folder / Path(value[0]).expanduser()), *value[1:])
        if not isinstance(value, str) or "://" in value:
            return value
        return str(folder / Path(value).expanduser())
