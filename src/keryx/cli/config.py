"""``keryx config``: show every setting with its origin, and change settings."""

from collections.abc import Callable
from typing import TypeVar

import click

from keryx.config_load import explain_all, find_folders, get_value, set_value
from keryx.config_load.files import misplaced_files
from keryx.errors import InvalidValue

T = TypeVar("T")

VALUE_MAX = 60


@click.group(name="config")
def command() -> None:
    """Show and change the settings.

    Example:  keryx config show
    """


@command.command
def show() -> None:
    """Print every setting, its value and the origin of the value.

    Example:  keryx config show
    """
    rows = [row._replace(value=_on_one_line(row.value)) for row in _or_exit(explain_all)]
    name_width, value_width = (max(len(row[column]) for row in rows) for column in (0, 1))
    for row in rows:
        click.echo(f"{row.name:<{name_width}}  {row.value:<{value_width}}  {row.origin}")
    _warn_of_misplaced_files()


@command.command
@click.argument("name")
def get(name: str) -> None:
    """Print the value of one setting. Of a secret, print only whether it is set.

    NAME is a setting, like scope.dm.

    Example:  keryx config get timezone
    """
    click.echo(_or_exit(lambda: get_value(name)).value)
    _warn_of_misplaced_files()


@command.command(name="set")
@click.argument("name")
@click.argument("value")
def set_(name: str, value: str) -> None:
    """Write one setting into your own file, and keep the comments of the file.

    A value that would not load is refused. Write a list with commas.

    Example:  keryx config set reset.mode daily
    """
    configuration = _or_exit(lambda: set_value(name, value), "Nothing was written.")
    row = next(row for row in configuration.rows if row.name == name)
    click.echo(f"{name} = {_on_one_line(value)} was written to {configuration.user_file}.")
    if not row.origin.startswith(f"{configuration.user_file}:"):
        click.echo(f"{row.origin} overrides it: {name} stays {_on_one_line(row.value)}.")


@command.command
def path() -> None:
    """Print the path of your own file, even if the file does not exist.

    Example:  $EDITOR $(keryx config path)
    """
    click.echo(str(_or_exit(find_folders).user_file))
    _warn_of_misplaced_files()


def _warn_of_misplaced_files() -> None:
    """Warn of files that Keryx does not read, on standard error: programs read standard output."""
    folders = find_folders()
    for path in misplaced_files(folders):
        click.echo(f"{path} is not read: move it to {folders.config_dir}", err=True)


def _on_one_line(value: str) -> str:
    line = " ".join(value.split())
    return line if len(line) <= VALUE_MAX else line[: VALUE_MAX - 1] + "…"


def _or_exit(call: Callable[[], T], *more: str) -> T:
    """Return the result of a call. If it raises ``InvalidValue``, print the message and ``more``, and exit with 1."""
    try:
        return call()
    except InvalidValue as error:
        for line in (str(error), *more):
            click.echo(line, err=True)
        raise click.exceptions.Exit(1) from error
