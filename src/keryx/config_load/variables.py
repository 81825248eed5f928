"""Settings as variables: of the environment, and of the profile's ``.env``.

An empty variable counts as not set. An environment variable that begins with ``KERYX_`` and is no setting is ignored
(Kubernetes sets ``KERYX_SERVICE_HOST`` for a service of that name), unless its name is similar to that of a setting.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from keryx.config import ProfileFolders
from keryx.config.setting import HOME_VARIABLE, PREFIX
from keryx.config_load.files import read_text
from keryx.config_load.sources import RawValue
from keryx.config_load.table import NamedSetting, Table
from keryx.errors import InvalidValue

COMMAND_VARIABLE = "KERYX_COMMAND"
"""How Keryx was started; ``scripts/keryx`` sets it."""
OTHERS = frozenset({HOME_VARIABLE, COMMAND_VARIABLE, "KERYX_SESSION_ID"})
"""Variables of Keryx that are no settings. The last tells a process that Keryx started its session."""

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*")
_QUOTED = re.compile(r"""(["'])(.*)\1(?:\s+#.*)?""")
_COMMENT = re.compile(r"(?:^|\s)#.*")


def read_environment(
    table: Table, environ: Mapping[str, str], folders: ProfileFolders
) -> Iterator[RawValue | str]:
    """Yield the settings of the environment, and every problem with them."""
    for variable in sorted(name for name in environ if name.startswith(PREFIX)):
        if environ[variable] and variable not in OTHERS:
            yield from _read_variable(table, variable, environ[variable], origin=variable, folders=folders)


def read_secrets(table: Table, folders: ProfileFolders) -> Iterator[RawValue | str]:
    """Yield the settings of the ``.env``, and every problem with them; ignore variables of other programs."""
    path = folders.secrets_file
    try:
        text = read_text(path, private=True) or ""
    except InvalidValue as error:
        yield str(error)
        return
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        origin = f"{path}:{number}"
        match = _LINE.fullmatch(line)
        if match is None:
            # Do not repeat the line: it may contain a secret.
            yield f"{origin}: this is not a variable; write NAME=value"
        elif match[1] == HOME_VARIABLE:
            yield f"{origin}: {HOME_VARIABLE} determines where this file is; set it in the environment"
        elif match[1].startswith(PREFIX) and _unquoted(match[2]):
            found = list(_read_variable(table, match[1], _unquoted(match[2]), origin=origin, folders=folders))
            # In Keryx's own file, every variable with Keryx's prefix must be a setting.
            yield from found or [f"{origin}: there is no setting {match[1]}; remove the line"]


def known_variables(environ: Mapping[str, str], path: Path) -> dict[str, str]:
    """Return all variables of the environment and of the ``.env``, which must be readable; the environment wins."""
    matches = (_LINE.fullmatch(line) for line in (read_text(path, private=True) or "").splitlines())
    written = {match[1]: _unquoted(match[2]) for match in matches if match is not None}
    return {name: value for name, value in {**written, **environ}.items() if value}


def _read_variable(
    table: Table, variable: str, value: str, *, origin: str, folders: ProfileFolders
) -> Iterator[RawValue | str]:
    try:
        setting = table.for_variable(variable)
    except InvalidValue as error:
        yield f"{origin}: {error}"
        return
    if setting is not None:
        named = NamedSetting(setting=setting, keys=tuple(setting.parts))
        yield RawValue(named=named, raw=value, origin=origin)
    elif family := table.find_family(variable):
        yield f"{origin}: no variable can set {family.name}; write it into {folders.user_file}"
    elif near := table.nearest_variable(variable):
        yield f"{origin}: there is no setting {variable}; did you mean {near}?"


def _unquoted(text: str) -> str:
    match = _QUOTED.fullmatch(text)
    return match[2] if match else _COMMENT.sub("", text).strip()
