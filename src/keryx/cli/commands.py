"""The table of commands: each noun's module adds its own here.

Every command's help ends with an example; a test reads it.
"""

from typing import Annotated

import typer

import keryx

HELP = """The session layer of an AI agent: knows which conversation a message belongs to, keeps it for good,
and brings every answer back to the right place.

Example:  keryx --version
"""

app = typer.Typer(name="keryx", no_args_is_help=True, add_completion=False, rich_markup_mode=None, help=HELP)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - the shape typer calls
    if wanted:
        typer.echo(f"keryx {keryx.__version__}")
        raise typer.Exit


@app.callback()
def keryx_command(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", "-V", is_eager=True, callback=_print_version, help="Print the version."),
    ] = False,
) -> None:
    """Stand for the options before any command."""
