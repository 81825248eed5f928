"""Settings as variables: of the environment, and of the profile's ``.env``.

An empty variable counts as none. Variables that begin like ours and mean something else are left alone (Kubernetes sets
``KERYX_SERVICE_HOST`` for a service of that name); what is nearly one of ours is taken for a slip.
"""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from keryx.config.setting import HOME_VARIABLE, PREFIX
from keryx.config_load.sources import Given
from keryx.config_load.table import NamedSetting, Table
from keryx.errors import InvalidValue

OTHERS = frozenset({HOME_VARIABLE, "KERYX_SESSION_ID"})
"""Ours too, and no settings: the second is what a process we start is told."""

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*")
_QUOTED = re.compile(r"""(["'])(.*)\1(?:\s+#.*)?""")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_OTHERS_MAY = stat.S_IRWXG | stat.S_IRWXO


def given_by_environment(table: Table, environ: Mapping[str, str], user_file: Path) -> Iterator[Given | str]:
    """Yield what the environment sets."""
    for variable in sorted(name for name in environ if name.startswith(PREFIX)):
        if environ[variable] and variable not in OTHERS:
            yield from _given(table, variable, environ[variable], origin=variable, user_file=user_file)


def given_by_secrets(table: Table, path: Path, user_file: Path) -> Iterator[Given | str]:
    """Yield what the ``.env`` sets; variables that are not ours are for others, and left alone."""
    try:
        text = _read_private(path)
    except InvalidValue as error:
        yield str(error)
        return
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        origin = f"{path}:{number}"
        match = _LINE.fullmatch(line)
        if match is None:
            # What stands there may be a secret: it is not repeated.
            yield f"{origin}: this is no variable; write NAME=value"
        elif match[1] == HOME_VARIABLE:
            yield f"{origin}: {HOME_VARIABLE} says where this file is; set it in the environment"
        elif match[1].startswith(PREFIX) and _unquoted(match[2]):
            said = list(_given(table, match[1], _unquoted(match[2]), origin=origin, user_file=user_file))
            # In a file of ours nobody else's variable begins like ours.
            yield from said or [f"{origin}: there is no setting {match[1]}; remove the line"]


def known_variables(environ: Mapping[str, str], path: Path) -> dict[str, str]:
    """Return every variable that is set, ours and others'.

    Those of the environment win over those of the ``.env``, which must have been read without a problem.
    """
    matches = (_LINE.fullmatch(line) for line in _read_private(path).splitlines())
    written = {match[1]: _unquoted(match[2]) for match in matches if match is not None}
    return {name: value for name, value in {**written, **environ}.items() if value}


def _given(table: Table, variable: str, value: str, *, origin: str, user_file: Path) -> Iterator[Given | str]:
    try:
        setting = table.for_variable(variable)
    except InvalidValue as error:
        yield f"{origin}: {error}"
        return
    if setting is not None:
        yield Given(named=NamedSetting(setting=setting, keys=tuple(setting.parts)), raw=value, origin=origin)
    elif family := table.chosen_family(variable):
        yield f"{origin}: no variable can set {family.name}; write it into {user_file}"
    elif near := table.nearest_variable(variable):
        yield f"{origin}: there is no setting {variable}; did you mean {near}?"


def _read_private(path: Path) -> str:
    """Return what a file of secrets says, nothing where there is none; refuse one that others may read."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            mode = os.fstat(file.fileno()).st_mode
            if os.name == "posix" and mode & _OTHERS_MAY:
                raise InvalidValue(
                    f"{path}: others may read these secrets (mode {stat.S_IMODE(mode):04o}); run: chmod 600 {path}"
                )
            return file.read()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise InvalidValue(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidValue(f"{path}: this is not UTF-8; save the file in that encoding") from error


def _unquoted(text: str) -> str:
    match = _QUOTED.fullmatch(text)
    return match[2] if match else _COMMENT.sub("", text).strip()
