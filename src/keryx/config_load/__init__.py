"""Read the configuration from files and the environment. No other module reads the environment.

The sources, weakest first: defaults, the project's file, the user's file, the profile's ``.env``, the environment.
Either every value is valid, or ``InvalidValue`` lists all problems, one per line.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from keryx.config import Configuration, Explained, ProfileFolders
from keryx.config_load.build import configuration_of
from keryx.config_load.files import find_project_file, folders_of, read_text, replace_file
from keryx.config_load.sources import SettingReader, zone_default
from keryx.config_load.table import Table
from keryx.config_load.variables import known_variables, read_environment, read_secrets
from keryx.config_load.yaml_file import read_yaml, with_value
from keryx.errors import InvalidValue

__all__ = ["explain_all", "find_folders", "get_value", "load_config", "set_value"]


def load_config(environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Configuration:
    """Return the configuration of the profile; raise ``InvalidValue`` with every problem, one per line.

    ``environ`` and ``cwd`` are the process's own by default.
    """
    return _load(Table(), *_defaults(environ, cwd))


def find_folders(environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> ProfileFolders:
    """Return the profile's folders without reading the files in them."""
    return folders_of(*_defaults(environ, cwd))


def explain_all(environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> list[Explained]:
    """Return every setting with its value and origin, including those of plug-ins that are not configured.

    A plug-in that is not configured and cannot be loaded has a row with the reason.
    """
    table = Table()
    broken = table.load_all()
    return [*_load(table, *_defaults(environ, cwd)).rows, *broken]


def get_value(name: str, environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Explained:
    """Return one setting with its value and origin; raise ``InvalidValue`` if it does not exist or is not set."""
    table = Table()
    known = table.named(name)
    for row in _load(table, *_defaults(environ, cwd)).rows:
        if row.name == known.name:
            return row
    raise InvalidValue(f"{name} is not set")


def set_value(
    name: str, value: str, *, environ: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Configuration:
    """Write one setting into the user's file and return the new configuration.

    Raises ``InvalidValue``, and writes nothing, if the new configuration would not load.
    """
    environ, cwd = _defaults(environ, cwd)
    folders = folders_of(environ, cwd)
    table = Table()
    target = table.named(name)
    setting = target.setting
    if setting.place == "environment":
        raise InvalidValue(
            f"{name}: this cannot be set in a file; set the environment variable {setting.variable}"
        )
    if setting.place == "secret":
        raise InvalidValue(
            f"{name}: this is a secret; write {setting.variable}=… into {folders.secrets_file} (mode 0600)"
        )
    try:
        new_value = setting.resolved(setting.read(value), cwd)
    except InvalidValue as error:
        raise InvalidValue(f"{name}: {error}") from error
    path = folders.user_file
    text = with_value(table, path, read_text(path) or "", named=target, value=new_value)
    configuration = _load(table, environ, cwd, user_text=text)
    replace_file(path, text)
    return configuration


def _defaults(environ: Mapping[str, str] | None, cwd: Path | None) -> tuple[Mapping[str, str], Path]:
    return os.environ if environ is None else environ, Path.cwd() if cwd is None else cwd


def _load(
    table: Table, environ: Mapping[str, str], cwd: Path, *, user_text: str | None = None
) -> Configuration:
    """Read every source. ``user_text`` replaces the content of the user's file."""
    folders = folders_of(environ, cwd)
    reader = SettingReader(folders, table.plugins.names("platforms"))
    reader.add("system", [zone_default(environ)], folder=cwd)
    project_file = find_project_file(cwd)
    if project_file is not None:
        reader.add("project", read_yaml(table, project_file), folder=project_file.parent)
    reader.add("user", read_yaml(table, folders.user_file, user_text), folder=folders.config_dir)
    reader.add("secrets", read_secrets(table, folders), folder=folders.config_dir)
    reader.add("environment", read_environment(table, environ, folders), folder=cwd)
    if reader.problems:
        raise InvalidValue("\n".join(reader.problems))
    variables = known_variables(environ, folders.secrets_file)
    return configuration_of(table, reader.values, folders, project_file, variables=variables, environ=environ)
