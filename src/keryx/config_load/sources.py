"""What the sources said so far, and everything that was wrong with it.

Sources are taken weakest first: a later value replaces an earlier one of the same name. A problem stops nothing, so
that all of them can be told at once.
"""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Literal

from keryx.config.readers import Raw
from keryx.config.values import Found, Values
from keryx.config_load.table import NamedSetting
from keryx.errors import InvalidValue
from keryx.values import dataclass

SourceKind = Literal["project", "user", "secrets", "environment", "program"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingSource:
    """One place settings come from; relative paths in it count from ``folder``."""

    kind: SourceKind
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One value as a source gives it; ``origin`` is ``file:line`` or the variable."""

    named: NamedSetting
    raw: Raw
    origin: str


class Reading:
    """Collects values and problems; ``user_file`` and ``secrets_file`` are where a problem sends people.

    ``platforms`` are the names of those that are installed.
    """

    def __init__(self, *, user_file: Path, secrets_file: Path, platforms: Collection[str]) -> None:
        self._user_file = user_file
        self._secrets_file = secrets_file
        self._platforms = platforms
        self._found: dict[str, Found] = {}
        self.values = Values(found=self._found)
        self.problems: list[str] = []

    def take(self, source: SettingSource, given: Iterable[Given | str]) -> None:
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
                named = each.named
                self._found[named.name] = Found(
                    setting=named.setting, chosen=named.chosen, value=value, origin=each.origin
                )

    def _read(self, source: SettingSource, given: Given) -> object:
        setting = given.named.setting
        self._refuse(source, given)
        if setting.chosen is not None:
            setting.chosen(given.named.chosen or "")
        value = setting.resolved(setting.read(given.raw), source.folder)
        if setting.platforms is not None:
            setting.platforms(value if setting.chosen is None else given.named.chosen, self._platforms)
        if source.kind == "project" and setting.is_path and isinstance(value, str):
            self._keep_inside(value, source.folder)
        return value

    def _keep_inside(self, path: str, folder: Path) -> None:
        # Whoever wrote a project's file could otherwise open the whole disk to the tools of who runs Keryx in it.
        if not Path(path).resolve().is_relative_to(folder.resolve()):
            raise InvalidValue(f"a project's lies in the project; write any other into {self._user_file}")

    def _refuse(self, source: SettingSource, given: Given) -> None:
        setting = given.named.setting
        in_file = source.kind in ("project", "user")
        if setting.place == "environment" and source.kind != "environment":
            raise InvalidValue(f"no file can say this; set the environment variable {setting.variable}")
        is_own = setting.place == "own" or setting.name.startswith("platforms.")
        if is_own and source.kind == "project":
            raise InvalidValue(f"a project must not decide this; write it into {self._user_file}")
        # A secret is the whole value, or the part of it that is not shown.
        hidden = isinstance(given.raw, str) and setting.shown(given.raw) != given.raw
        if in_file and (setting.place == "secret" or hidden):
            what = "this is a secret" if setting.place == "secret" else "this holds a password"
            raise InvalidValue(
                f"{what} and must not stand here; write {setting.variable}=… into {self._secrets_file}"
            )
