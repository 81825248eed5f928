"""The table of commands.

The help of every command ends with an example; a test reads it. Each command imports its modules when it runs:
``--help`` loads no store, no platform and no terminal library, and a chat loads no other command.
"""

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

import click

import keryx
from keryx.errors import KeryxError

MODULES: Final[Mapping[str, str]] = {name: f"keryx.cli.{name}" for name in ("config", "offline", "torture")}
"""The modules of the other commands. Each holds its command as ``command``."""


class _Table(click.Group):
    """The commands of this module and of ``MODULES``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names."""
        return sorted([*super().list_commands(ctx), *MODULES])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with this name, loading its module, or None."""
        if cmd_name not in MODULES:
            return super().get_command(ctx, cmd_name)
        command: click.Command = importlib.import_module(MODULES[cmd_name]).command
        return command


resume_option = click.option(
    "--resume", "-r", metavar="NAME", help="Continue a conversation, given by name, number or id."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(name="keryx", cls=_Table, invoke_without_command=True)
@click.option(
    "--print",
    "-p",
    "question",
    is_flag=False,
    flag_value="-",
    metavar="[TEXT]",
    help="Print the answer to this text and exit. Without a text, or with -, read standard input.",
)
@resume_option
@click.version_option(
    keryx.__version__, "--version", "-V", message="keryx %(version)s", help="Print the version."
)
@click.pass_context
def app(context: click.Context, *, question: str | None, resume: str | None) -> None:
    """Run Keryx, the session layer of an AI agent.

    Keryx finds the conversation that a message belongs to, keeps it for good, and delivers every answer to the right
    place. Without a command it opens a chat in this terminal.

    Example:  keryx --print "What did we say about the hotel?"
    """
    if context.invoked_subcommand is not None:
        return
    if question is None and sys.stdin.isatty():
        _run("chat", resume=resume)
    text = sys.stdin.read() if question in (None, "-") else question
    if not text or not text.strip():
        click.echo("keryx: there is no question: give a text, or write one to standard input", err=True)
        raise click.exceptions.Exit(1)
    _run("print_answer", text=text, resume=resume)


@app.command
@resume_option
def chat(*, resume: str | None) -> None:
    """Chat in this terminal.

    Example:  keryx chat --resume Rome
    """
    _run("chat", resume=resume)


@app.command
@click.option(
    "--demo", is_flag=True, help="Serve sample conversations from a temporary folder, deleted at the end."
)
def serve(*, demo: bool) -> None:
    """Run a gateway until Ctrl-C or SIGTERM.

    Example:  keryx serve
    """
    if not demo:
        _run("serve")
    _exit_with(lambda: importlib.import_module("keryx.cli.demo").serve_demo())


@app.command
@json_option
def nodes(*, as_json: bool) -> None:
    """Show the processes that use the store, and what each holds.

    Example:  keryx nodes --json
    """
    _run("nodes", as_json=as_json)


@app.command
@click.option(
    "--days", type=click.IntRange(1, 3_660), default=7, show_default=True, help="Days, including today."
)
@json_option
def usage(*, days: int, as_json: bool) -> None:
    """Show tokens and estimated costs of the last days.

    The amounts are shown by day, by model and by conversation.

    Example:  keryx usage --days 30
    """
    _run("print_usage", module="keryx.cli.usage", days=days, as_json=as_json)


def _run(name: str, *, module: str = "keryx.cli.running", **options: Any) -> NoReturn:
    """Run a function of ``module`` with the configuration, and exit with its result."""

    def run() -> int:
        configuration = importlib.import_module("keryx.config_load").load_config()
        code: int = getattr(importlib.import_module(module), name)(configuration, **options)
        return code

    _exit_with(run)


def _exit_with(run: Callable[[], int]) -> NoReturn:
    """Exit with the result of ``run`` as the exit code, or with 1 and a message on standard error."""
    try:
        code = run()
    except KeryxError as error:
        code = 1
        for line in str(error).splitlines():
            click.echo(f"keryx: {line}", err=True)
    raise click.exceptions.Exit(code)
