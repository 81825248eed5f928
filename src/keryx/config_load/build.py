"""Build the configuration, and the rows that explain it, from the values of all sources."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from keryx.config import (
    Configuration,
    Explained,
    LogSettings,
    Plugin,
    ProfileFolders,
    Settings,
)
from keryx.config.readers import NONE
from keryx.config.setting import Setting, Values
from keryx.config_load import own_rows
from keryx.config_load.table import Table
from keryx.config_load.variables import COMMAND_VARIABLE
from keryx.core.conversations.settings import TITLES, personalities, scope_settings
from keryx.core.people.settings import PAIRING, WELCOME_TEXT, toolset_settings
from keryx.core.turns.settings import TURNS, busy_settings, reset_policies
from keryx.errors import InvalidValue


def configuration_of(
    table: Table,
    values: Values,
    folders: ProfileFolders,
    project_file: Path | None,
    *,
    variables: Mapping[str, str],
    environ: Mapping[str, str],
) -> Configuration:
    """Return the configuration; raise ``InvalidValue`` with every problem that the plug-ins' checks find.

    ``variables`` are those of the environment and of the profile's ``.env``.
    """
    database = values.of(own_rows.DATABASE) or str(folders.data_dir / "keryx.db")
    workspace = values.of(own_rows.WORKSPACE)
    configuration = Configuration(
        profile=folders.profile,
        config_dir=folders.config_dir,
        data_dir=folders.data_dir,
        settings=_settings(table, values, folders.profile),
        project_file=project_file,
        database=database,
        timezone=values.of(own_rows.TIMEZONE),
        workspace=None if workspace is None else Path(workspace),
        turns_max=values.of(TURNS),
        log=LogSettings(level=values.of(own_rows.LOG_LEVEL), format=values.of(own_rows.LOG_FORMAT)),
        values=values,
        environ=MappingProxyType(dict(environ)),
        variables=MappingProxyType(dict(variables)),
        rows=tuple(_rows(table, values, database)),
        plugins=table.plugins.used(values),
        command=environ.get(COMMAND_VARIABLE) or "keryx",
    )
    _check_plugins(configuration)
    return configuration


def _check_plugins(configuration: Configuration) -> None:
    plugins = configuration.plugins
    used: list[Plugin] = [
        *plugins.agents.values(),
        *plugins.tools.values(),
        plugins.backend,
        *plugins.platforms.values(),
    ]
    problems: list[str] = []
    for plugin in used:
        try:
            plugin.check(configuration)
        except InvalidValue as error:
            problems.append(str(error))
    if problems:
        raise InvalidValue("\n".join(problems))


def _settings(table: Table, values: Values, profile: str) -> Settings:
    return Settings(
        profile=profile,
        scope=scope_settings(values),
        reset=reset_policies(values, zone=values.of(own_rows.TIMEZONE)),
        busy=busy_settings(values),
        platforms=frozenset(table.plugins.names("platforms")),
        pairing_platforms=frozenset(values.of(PAIRING)),
        welcome=values.of(WELCOME_TEXT),
        personalities=MappingProxyType(personalities(values)),
        toolsets=toolset_settings(values),
        titles=values.of(TITLES),
    )


def _rows(table: Table, values: Values, database: str) -> Iterator[Explained]:
    for setting in table.rows:
        if setting.check_choice is not None:
            for name, found in values.choices_of(setting):
                yield Explained(name, _shown(setting, found.value), found.origin)
        else:
            value = database if setting is own_rows.DATABASE else values.of(setting)
            yield Explained(setting.name, _shown(setting, value), values.origin_of(setting))


def _shown(setting: Setting[Any], value: object) -> str:
    if setting.place == "secret":
        return "not set" if value is None else "set"
    if value is None or value == ():
        return NONE
    if setting.holds_pairs and isinstance(value, tuple):
        # Only the names: the values may be secrets.
        value = tuple(each.partition("=")[0] for each in value)
    if isinstance(value, bool):
        return str(value).lower()
    return setting.redact(", ".join(value) if isinstance(value, tuple) else str(value))
