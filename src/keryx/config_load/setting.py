"""What a row of the table of settings is: its name, how it is read, where it may be written, how it is shown."""

from collections.abc import Callable
from pathlib import Path
from typing import Generic, Literal

from keryx.config_load.readers import Reader, T
from keryx.values import dataclass

PREFIX = "KERYX_"
Place = Literal["anywhere", "own", "environment", "secret"]
"""``own``: not in a project's file, because whoever wrote that could lead conversations elsewhere."""


def _as_it_is(value: str) -> str:
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting(Generic[T]):
    """One row of the table."""

    name: str
    read: Reader[T]
    default: T
    help: str
    place: Place = "anywhere"
    chosen: Callable[[str], object] | None = None
    """Checks the part in angle brackets."""
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
        return None if self.chosen else PREFIX + self.name.upper().replace(".", "_")

    def named(self, chosen: str | None) -> str:
        """Return the name with the owner's choice in it."""
        return ".".join(chosen or "" if part.startswith("<") else part for part in self.parts)

    def resolved(self, value: T, folder: Path) -> T:
        """Return a path as seen from ``folder``, and anything else as it is."""
        if not self.is_path:
            return value
        if isinstance(value, tuple) and value and "/" in value[0]:
            # A bare name is looked for on the path, as a shell would.
            return (str(folder / Path(value[0]).expanduser()), *value[1:])  # type: ignore[return-value]
        if not isinstance(value, str) or "://" in value:
            return value
        return str(folder / Path(value).expanduser())  # type: ignore[return-value]  # A path's T is a text.
