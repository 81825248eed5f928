"""From files and the environment to the configuration; the only place that reads the environment.

Weakest first: defaults, the project's file, the user's file, the profile's ``.env``, the environment. Either everything
that was said is right, or ``InvalidValue`` tells all that is not, a line each.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from keryx.config import Configuration, Explained
from keryx.config_load.build import configuration_of
from keryx.config_load.entry_points import installed_entry_points
from keryx.config_load.folders import Folders, find_project_file, folders_of
from keryx.config_load.plugins import InstalledPlugins
from keryx.config_load.sources import Reading, SettingSource
from keryx.config_load.table import Table
from keryx.config_load.variables import given_by_environment, given_by_secrets, known_variables
from keryx.config_load.writing import replace_file
from keryx.config_load.yaml_file import given_by, read_text, with_value
from keryx.errors import InvalidValue

__all__ = ["explain_all", "find_folders", "get_value", "load_config", "set_value"]


def load_config(environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Configuration:
    """Return the configuration of the profile; raise ``InvalidValue`` with every problem, a line each.

    ``environ`` and ``cwd`` are the process's own where they are left out.
    """
    return _load(_new_table(), *_surroundings(environ, cwd))


def find_folders(environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Folders:
    """Return where the profile keeps its things, whatever is in them."""
    return folders_of(*_surroundings(environ, cwd))


def explain_all(environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> list[Explained]:
    """Return every setting with its value and origin, also of plug-ins that are installed and not configured.

    A plug-in that is not configured and cannot be loaded has a row with the reason.
    """
    table = _new_table()
    broken = table.load_all()
    return [*_load(table, *_surroundings(environ, cwd)).explain(), *broken]


def get_value(name: str, environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Explained:
    """Return one setting with its value and origin; raise ``InvalidValue`` if there is none of that name."""
    table = _new_table()
    known = table.named(name)
    for row in _load(table, *_surroundings(environ, cwd)).explain():
        if row.name == known.name:
            return row
    raise InvalidValue(f"{name} is not set")


def set_value(
    name: str, value: str, *, environ: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Configuration:
    """Write one setting into the user's file and return the configuration as it is then.

    Raises ``InvalidValue``, and writes nothing, if the configuration would not load.
    """
    environ, cwd = _surroundings(environ, cwd)
    folders = folders_of(environ, cwd)
    table = _new_table()
    target = table.named(name)
    setting = target.setting
    if setting.place == "environment":
        raise InvalidValue(f"{name}: no file can say this; set the environment variable {setting.variable}")
    if setting.place == "secret":
        raise InvalidValue(
            f"{name}: this is a secret; write {setting.variable}=… into {folders.secrets_file} (mode 0600)"
        )
    try:
        wanted = setting.resolved(setting.read(value), cwd)
    except InvalidValue as error:
        raise InvalidValue(f"{name}: {error}") from error
    path = folders.user_file
    text = with_value(table, path, read_text(path) or "", named=target, value=wanted)
    configuration = _load(table, environ, cwd, user_text=text)
    replace_file(path, text)
    return configuration


def _new_table() -> Table:
    return Table(InstalledPlugins(installed_entry_points()))


def _surroundings(environ: Mapping[str, str] | None, cwd: Path | None) -> tuple[Mapping[str, str], Path]:
    return os.environ if environ is None else environ, Path.cwd() if cwd is None else cwd


def _load(
    table: Table, environ: Mapping[str, str], cwd: Path, *, user_text: str | None = None
) -> Configuration:
    """Read every source; the user's file as if it said ``user_text``, where that is given."""
    folders = folders_of(environ, cwd)
    user_file = folders.user_file
    reading = Reading(
        user_file=user_file,
        secrets_file=folders.secrets_file,
        platforms=table.plugins.names("platforms"),
    )
    project_file = find_project_file(cwd)
    if project_file is not None:
        _take_file(table, reading, project_file, SettingSource(kind="project", folder=project_file.parent))
    _take_file(
        table, reading, user_file, SettingSource(kind="user", folder=folders.config_dir), text=user_text
    )
    reading.take(
        SettingSource(kind="secrets", folder=folders.config_dir),
        given_by_secrets(table, folders.secrets_file, user_file),
    )
    reading.take(
        SettingSource(kind="environment", folder=cwd), given_by_environment(table, environ, user_file)
    )
    if reading.problems:
        raise InvalidValue("\n".join(reading.problems))
    variables = known_variables(environ, folders.secrets_file)
    return configuration_of(
        table, reading.values, folders, project_file, variables=variables, environ=environ
    )


def _take_file(
    table: Table, reading: Reading, path: Path, source: SettingSource, *, text: str | None = None
) -> None:
    try:
        text = read_text(path) if text is None else text
    except InvalidValue as error:
        reading.problems.append(str(error))
        return
    if text is not None:
        reading.take(source, given_by(table, path, text))
