"""Collect the values of all sources, and every problem with them.

Sources are added weakest first: a later value replaces an earlier one of the same name. A problem does not end the
reading, so that all problems are reported at once.
"""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Literal

from keryx.config import ProfileFolders
from keryx.config.readers import Raw
from keryx.config.setting import Found, Values
from keryx.config_load.own_rows import TIMEZONE
from keryx.config_load.system_zone import system_zone
from keryx.config_load.table import NamedSetting
from keryx.errors import InvalidValue
from keryx.values import dataclass

SourceKind = Literal["system", "project", "user", "secrets", "environment", "program"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RawValue:
    """A value as a source gives it; ``origin`` is ``file:line`` or the variable."""

    named: NamedSetting
    raw: Raw
    origin: str


def zone_default(environ: Mapping[str, str]) -> RawValue:
    """Return the default of ``timezone``: the zone of this machine."""
    named = NamedSetting(setting=TIMEZONE, keys=(TIMEZONE.name,))
    return RawValue(named=named, raw=system_zone(environ), origin="default")


class SettingReader:
    """Collects values and problems. ``platforms`` are the names of the installed platforms."""

    def __init__(self, folders: ProfileFolders, platforms: Collection[str]) -> None:
        self._folders = folders
        self._platforms = platforms
        self._found: dict[str, Found] = {}
        self.values = Values(found=self._found)
        self.problems: list[str] = []

    def add(self, kind: SourceKind, given: Iterable[RawValue | str], *, folder: Path) -> None:
        """Add the values of a source, whose relative paths start at ``folder``. A text among them is a problem."""
        for each in given:
            if isinstance(each, str):
                self.problems.append(each)
                continue
            named = each.named
            try:
                value = self._read(kind, each, folder)
            except InvalidValue as error:
                self.problems.append(f"{each.origin}: {named.name}: {error}")
            else:
                self._found[named.name] = Found(
                    setting=named.setting, choice=named.choice, value=value, origin=each.origin
                )

    def _read(self, kind: SourceKind, given: RawValue, folder: Path) -> object:
        setting = given.named.setting
        self._check_place(kind, given)
        if setting.check_choice is not None:
            setting.check_choice(given.named.choice or "")
        value = setting.resolved(setting.read(given.raw), folder)
        if setting.check_platforms is not None:
            setting.check_platforms(
                value if setting.check_choice is None else given.named.choice, self._platforms
            )
        # Otherwise the author of a project file could open the whole disk to the tools of its users.
        is_confined = kind == "project" and setting.is_path and isinstance(value, str)
        if is_confined and not Path(str(value)).resolve().is_relative_to(folder.resolve()):
            raise InvalidValue(
                f"a project's path must be inside the project; write any other path into {self._folders.user_file}"
            )
        return value

    def _check_place(self, kind: SourceKind, given: RawValue) -> None:
        """Raise ``InvalidValue`` if the setting must not be set in this kind of source."""
        setting = given.named.setting
        if setting.place == "environment" and kind != "environment":
            raise InvalidValue(
                f"this cannot be set in a file; set the environment variable {setting.variable}"
            )
        is_own = setting.place == "own" or setting.name.startswith("platforms.")
        if is_own and kind == "project":
            raise InvalidValue(f"a project cannot set this; write it into {self._folders.user_file}")
        # A secret is the whole value, or the part of the value that is redacted.
        has_password = isinstance(given.raw, str) and setting.redact(given.raw) != given.raw
        if kind in ("project", "user") and (setting.place == "secret" or has_password):
            what = "this is a secret" if setting.place == "secret" else "this contains a password"
            raise InvalidValue(
                f"{what} and does not belong here; write {setting.variable}=… into {self._folders.secrets_file}"
            )
