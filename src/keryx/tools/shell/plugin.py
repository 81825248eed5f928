"""The tools that run commands as a plug-in, with the choice of the variables that commands see."""

import re
from collections.abc import Collection, Mapping
from typing import Final

from keryx.config.readers import list_of
from keryx.config.setting import HOME_VARIABLE, PREFIX, Setting
from keryx.errors import InvalidValue
from keryx.tools.plugin import MadeTools, ToolContext, ToolPlugin

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET: Final = re.compile(
    r"(?:^|_)(?:API_?)?KEYS?(?:_|$)|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|(?:^|_)PAT(?:_|$)"
)
_PASSWORD: Final = re.compile(r"://[^/?#@\s]*:[^/?#@\s]*@")


def variable_name(name: str) -> str:
    """Return the name of an environment variable, or raise ``InvalidValue``."""
    if not _VARIABLE.fullmatch(name):
        raise InvalidValue(f"{name!r} is no variable; write its name alone, such as GITHUB_TOKEN")
    return name


VARIABLES: Final[Setting[tuple[str, ...]]] = Setting(
    name="tools.terminal.variables",
    read=list_of(variable_name),
    default=(),
    place="own",
    help="The variables that commands get although they look like secrets; a list.",
)


def command_variables(environ: Mapping[str, str], named: Collection[str]) -> dict[str, str]:
    """Return the variables for commands: those ``named``, and others that neither look like a secret nor are ours.

    Of our own variables, commands see only the one with our home folder.
    """
    return {
        name: value
        for name, value in environ.items()
        if name in named
        or not (_is_secret(name, value) or (name.startswith(PREFIX) and name != HOME_VARIABLE))
    }


def _is_secret(name: str, value: str) -> bool:
    return bool(_SECRET.search(name.upper()) or _PASSWORD.search(value))


def _make(context: ToolContext) -> MadeTools:
    from keryx.tools.shell.process import ProcessTool
    from keryx.tools.shell.terminal import Terminal

    configuration = context.configuration
    terminal = Terminal(
        context.workspaces,
        environment=command_variables(configuration.environ, named=configuration.values.of(VARIABLES)),
        profile=configuration.profile,
        background=context.background,
    )
    return MadeTools(tools=[terminal, ProcessTool(context.database, context.background)])


PLUGIN: Final = ToolPlugin(settings=(VARIABLES,), make=_make)
