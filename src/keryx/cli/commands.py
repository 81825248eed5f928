"""The table of commands.

Every command's help ends with an example; a test reads it. What a command needs is imported when it runs: ``--help``
loads no store, no platform and nothing that draws, and a chat loads no other command.
"""

import importlib
import sys
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import click

import keryx
from keryx.errors import KeryxError

HELP: Final = """The session layer of an AI agent: knows which conversation a message belongs to, keeps it for good,
and brings every answer back to the right place.

Without a command it opens a chat in this terminal.

Example:  keryx --print "What did we say about the hotel?"
"""

MODULES: Final[Mapping[str, str]] = {name: f"keryx.cli.{name}" for name in ("config", "offline", "torture")}
"""Commands with a module of their own, which holds them as ``command``."""


class _Table(click.Group):
    """The commands of this module, and those of others by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names."""
        return sorted([*super().list_commands(ctx), *MODULES])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command called so, loaded by now, or None."""
        if cmd_name not in MODULES:
            return super().get_command(ctx, cmd_name)
        command: click.Command = importlib.import_module(MODULES[cmd_name]).command
        return command


resume_option = click.option(
    "--resume", "-r", metavar="NAME", help="Go on with a conversation, by name, number or id."
)


@click.group(name="keryx", cls=_Table, invoke_without_command=True, help=HELP)
@click.option(
    "--print",
    "-p",
    "say",
    is_flag=False,
    flag_value="-",
    metavar="[TEXT]",
    help="Say this, print the answer and leave; - or nothing reads it from the input.",
)
@resume_option
@click.version_option(
    keryx.__version__, "--version", "-V", message="keryx %(version)s", help="Print the version."
)
@click.pass_context
def app(context: click.Context, *, say: str | None, resume: str | None) -> None:
    """Open a chat, or print one answer, where no command is given."""
    if context.invoked_subcommand is not None:
        return
    if say is None and sys.stdin.isatty():
        _run("chat", resume=resume)
    text = sys.stdin.read() if say in (None, "-") else say
    if not text or not text.strip():
        _fail("there is nothing to say: give a text, or write one to the input")
    _run("print_answer", text=text, resume=resume)


@app.command(help="Chat in this terminal.\n\nExample:  keryx chat --resume Rome")
@resume_option
def chat(*, resume: str | None) -> None:
    """Chat in this terminal."""
    _run("chat", resume=resume)


@app.command(help="Run a gateway until Ctrl-C or SIGTERM.\n\nExample:  keryx serve")
@click.option(
    "--demo", is_flag=True, help="On sample conversations, in a folder of its own that is gone after it."
)
def serve(*, demo: bool) -> None:
    """Run a gateway."""
    if not demo:
        _run("serve")
    try:
        code: int = importlib.import_module("keryx.cli.demo").serve_demo()
    except KeryxError as error:
        _fail(str(error))
    _leave(code)


@app.command(help="Show who works on the store, and what each holds.\n\nExample:  keryx nodes --json")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def nodes(*, as_json: bool) -> None:
    """Show who holds what."""
    _run("nodes", as_json=as_json)


@app.command(
    help=(
        "Show tokens and estimated costs of the last days, by day, model and conversation.\n\n"
        "Example:  keryx usage --days 30"
    )
)
@click.option(
    "--days", type=click.IntRange(1, 3_660), default=7, show_default=True, help="How many, today included."
)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def usage(*, days: int, as_json: bool) -> None:
    """Show what was used."""
    _run("usage", days=days, as_json=as_json)


def _run(name: str, **options: Any) -> NoReturn:
    """Run one of ``cli.running`` with the configuration, and leave with its exit code."""
    try:
        configuration = importlib.import_module("keryx.config_load").load_config()
        code: int = getattr(importlib.import_module("keryx.cli.running"), name)(configuration, **options)
    except KeryxError as error:
        _fail(str(error))
    _leave(code)


def _leave(code: int) -> NoReturn:
    raise click.exceptions.Exit(code)


def _fail(sentence: str) -> NoReturn:
    for line in sentence.splitlines():
        click.echo(f"keryx: {line}", err=True)
    _leave(1)
