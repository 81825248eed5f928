"""``keryx config``: every setting, where its value came from, and how to change it."""

from typing import NoReturn

import click

from keryx.config_load import explain_all, find_folders, get_value, set_value
from keryx.errors import InvalidValue

VALUE_MAX = 60
HELP = """Show and change the settings.

Example:  keryx config show
"""


@click.group(name="config", help=HELP)
def command() -> None:
    """Group what concerns the settings."""


@command.command(
    name="show",
    help="Print every setting, its value and where that came from.\n\nExample:  keryx config show",
)
def show() -> None:
    """Print the whole configuration."""
    try:
        rows = [row._replace(value=_on_one_line(row.value)) for row in explain_all()]
    except InvalidValue as error:
        _fail(error)
    name_width, value_width = (max(len(row[column]) for row in rows) for column in (0, 1))
    for row in rows:
        click.echo(f"{row.name:<{name_width}}  {row.value:<{value_width}}  {row.origin}")
    _tell_passed_over()


@command.command(
    name="get",
    help=(
        "Print one value; of a secret, whether it is set. NAME is a setting, like scope.dm.\n\n"
        "Example:  keryx config get timezone"
    ),
)
@click.argument("name")
def get(name: str) -> None:
    """Print one value."""
    try:
        click.echo(get_value(name).value)
    except InvalidValue as error:
        _fail(error)
    _tell_passed_over()


@command.command(
    name="set",
    help=(
        "Write one value into your own file, comments kept; nothing is written that would not load. A list is written "
        "with commas.\n\n"
        "Example:  keryx config set reset.mode daily"
    ),
)
@click.argument("name")
@click.argument("value")
def set_(name: str, value: str) -> None:
    """Write one value."""
    try:
        configuration = set_value(name, value)
    except InvalidValue as error:
        _fail(error, "Nothing was written.")
    row = next(row for row in configuration.explain() if row.name == name)
    click.echo(f"{name} = {_on_one_line(value)} is written to {configuration.user_file}.")
    if not row.origin.startswith(f"{configuration.user_file}:"):
        click.echo(f"{row.origin} wins over it: {name} stays {_on_one_line(row.value)}.")


@command.command(
    name="path",
    help="Print where your own file is, or would be.\n\nExample:  $EDITOR $(keryx config path)",
)
def path() -> None:
    """Print the path of the user's file, also of one that does not load."""
    try:
        click.echo(str(find_folders().user_file))
    except InvalidValue as error:
        _fail(error)
    _tell_passed_over()


def _tell_passed_over() -> None:
    """Say which files were meant to be read, perhaps; beside the output, which programs take."""
    folders = find_folders()
    for path in folders.passed_over:
        click.echo(f"{path} is not read: this profile's lies in {folders.config_dir}", err=True)


def _on_one_line(value: str) -> str:
    line = " ".join(value.split())
    return line if len(line) <= VALUE_MAX else line[: VALUE_MAX - 1] + "…"


def _fail(error: InvalidValue, *more: str) -> NoReturn:
    for line in (str(error), *more):
        click.echo(line, err=True)
    raise click.exceptions.Exit(1)
