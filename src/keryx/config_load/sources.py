"""What the sources said so far, and everything that was wrong with it.

Sources are taken weakest first: a later value replaces an earlier one of the same name. A problem stops nothing, so
that all of them can be told at once.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, cast

from keryx.config_load.readers import Raw, T
from keryx.config_load.setting import Setting
from keryx.config_load.table import Named
from keryx.errors import InvalidValue
from keryx.values import dataclass

SourceKind = Literal["project", "user", "secrets", "environment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One place settings come from; relative paths in it count from ``folder``."""

    kind: SourceKind
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One value as a source gives it; ``origin`` is ``file:line`` or the variable."""

    named: Named
    raw: Raw
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One value that counts."""

    named: Named
    value: object
    origin: str


class Reading:
    """Collects values and problems; ``user_file`` and ``secrets_file`` are where a problem sends people."""

    def __init__(self, *, user_file: Path, secrets_file: Path) -> None:
        self._user_file = user_file
        self._secrets_file = secrets_file
        self._found: dict[str, Found] = {}
        self.problems: list[str] = []

    def take(self, source: Source, given: Iterable[Given | str]) -> None:
        """Take what a source gives; a text among it is a problem that was found on the way."""
        for each in given:
            if isinstance(each, str):
                self.problems.append(each)
                continue
            try:
                value = self._read(source, each)
            except InvalidValue as error:
                self.problems.append(f"{each.origin}: {each.named.name}: {error}")
            else:
                self._found[each.named.name] = Found(named=each.named, value=value, origin=each.origin)

    def of(self, setting: Setting[T], chosen: str | None = None) -> T:
        """Return the value of a setting, or its default."""
        found = self._found.get(setting.named(chosen))
        return setting.default if found is None else cast(T, found.value)

    def origin_of(self, setting: Setting[Any]) -> str:
        """Return where the value of a setting comes from."""
        found = self._found.get(setting.name)
        return "default" if found is None else found.origin

    def chosen(self, setting: Setting[Any]) -> list[Found]:
        """Return what was found for a setting with a chosen part, in the order of the names."""
        return sorted(
            (found for found in self._found.values() if found.named.setting is setting),
            key=lambda found: found.named.name,
        )

    def _read(self, source: Source, given: Given) -> object:
        setting = given.named.setting
        self._refuse(source, given)
        if setting.chosen is not None:
            setting.chosen(given.named.chosen or "")
        value = setting.resolved(setting.read(given.raw), source.folder)
        if source.kind == "project" and setting.is_path and isinstance(value, str):
            self._keep_inside(value, source.folder)
        return value

    def _keep_inside(self, path: str, folder: Path) -> None:
        # Whoever wrote a project's file could otherwise open the whole disk to the tools of who runs Keryx in it.
        if not Path(path).resolve().is_relative_to(folder.resolve()):
            raise InvalidValue(f"a project's lies in the project; write any other into {self._user_file}")

    def _refuse(self, source: Source, given: Given) -> None:
        setting = given.named.setting
        in_file = source.kind in ("project", "user")
        if setting.place == "environment" and source.kind != "environment":
            raise InvalidValue(f"no file can say this; set the environment variable {setting.variable}")
        if setting.place == "own" and source.kind == "project":
            raise InvalidValue(f"a project must not decide this; write it into {self._user_file}")
        # A secret is the whole value, or the part of it that is not shown.
        hidden = isinstance(given.raw, str) and setting.shown(given.raw) != given.raw
        if in_file and (setting.place == "secret" or hidden):
            what = "this is a secret" if setting.place == "secret" else "this holds a password"
            raise InvalidValue(
                f"{what} and must not stand here; write {setting.variable}=… into {self._secrets_file}"
            )
