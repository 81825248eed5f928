"""Read the settings that a program gives to ``keryx.open``: those that decide which session a message belongs to."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from keryx.config import ProfileFolders, Settings
from keryx.config.readers import Raw
from keryx.config_load import own_rows
from keryx.config_load.files import check_profile
from keryx.config_load.sources import RawValue, SettingReader, zone_default
from keryx.config_load.table import Table
from keryx.core.conversations.settings import scope_settings
from keryx.core.turns.settings import reset_policies
from keryx.errors import InvalidValue

SettingValue: TypeAlias = str | int | bool | Sequence[str] | None
SECTIONS: Final = ("scope", "reset", own_rows.TIMEZONE.name)


def settings_of_program(given: Mapping[str, SettingValue], *, profile: str | None) -> Settings:
    """Return the settings of a program; raise ``InvalidValue`` with every problem, one per line.

    ``given`` has the names and values of docs/reference/config.md.
    """
    table = Table()
    profile = check_profile("main" if profile is None else profile, origin="profile")
    unused = Path()  # no setting that a program can give is a path or a secret
    folders = ProfileFolders(profile=profile, config_dir=unused, data_dir=unused)
    reader = SettingReader(folders, table.plugins.names("platforms"))
    reader.add("system", [zone_default(os.environ)], folder=unused)
    reader.add("program", _raw_values(table, given), folder=unused)
    if reader.problems:
        raise InvalidValue("\n".join(reader.problems))
    return Settings(
        profile=profile,
        scope=scope_settings(reader.values),
        reset=reset_policies(reader.values, zone=reader.values.of(own_rows.TIMEZONE)),
    )


def _raw_values(table: Table, given: Mapping[str, SettingValue]) -> Iterator[RawValue | str]:
    for name, value in given.items():
        try:
            if name.partition(".")[0] not in SECTIONS:
                raise InvalidValue(f"a program cannot set {name}; it can set {', '.join(SECTIONS)}")
            named = table.named(name)
        except InvalidValue as error:
            yield f"settings: {error}"
        else:
            yield RawValue(named=named, raw=_raw(value), origin="settings")


def _raw(value: SettingValue) -> Raw:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | int):
        return str(value).lower()
    return tuple(value)
