"""The table of commands: each noun's module adds its own here.

Every command's help ends with an example; a test reads it. What a command needs is imported when it runs: ``--help``
loads no store, no platform and nothing that draws.
"""

import functools
import importlib
import sys
from typing import Annotated, Any, NoReturn

import typer

import keryx
from keryx.cli import config, offline
from keryx.cli.torture import HELP as TORTURE_HELP
from keryx.cli.torture import torture as torture_gateways
from keryx.config import Configuration
from keryx.config_load import load_config
from keryx.errors import KeryxError

HELP = """The session layer of an AI agent: knows which conversation a message belongs to, keeps it for good,
and brings every answer back to the right place.

Without a command it opens a chat in this terminal.

Example:  keryx --print "What did we say about the hotel?"
"""

app = typer.Typer(
    name="keryx", invoke_without_command=True, add_completion=False, rich_markup_mode=None, help=HELP
)
app.add_typer(config.app)
app.add_typer(offline.app)

Resume = Annotated[
    str | None, typer.Option("--resume", "-r", help="Go on with a conversation, by name, number or id.")
]


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - the shape typer calls
    if wanted:
        typer.echo(f"keryx {keryx.__version__}")
        raise typer.Exit


@app.callback()
def keryx_command(
    context: typer.Context,
    *,
    say: Annotated[
        str | None,
        typer.Option(
            "--print", "-p", help="Say this, print the answer and leave; - reads it from the input."
        ),
    ] = None,
    resume: Resume = None,
    version: Annotated[  # noqa: ARG001 - answered by its callback
        bool,
        typer.Option("--version", "-V", is_eager=True, callback=_print_version, help="Print the version."),
    ] = False,
) -> None:
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
def chat(*, resume: Resume = None) -> None:
    """Chat in this terminal."""
    _run("chat", resume=resume)


@app.command(help="Run a gateway until Ctrl-C or SIGTERM.\n\nExample:  keryx serve")
def serve(
    *,
    demo: Annotated[
        bool,
        typer.Option("--demo", help="On sample conversations, in a folder of its own that is gone after it."),
    ] = False,
) -> None:
    """Run a gateway."""
    if not demo:
        _run("serve")
    try:
        code: int = importlib.import_module("keryx.cli.demo").serve_demo()
    except KeryxError as error:
        _fail(str(error))
    raise typer.Exit(code)


@app.command(help="Show who works on the store, and what each holds.\n\nExample:  keryx nodes --json")
def nodes(*, as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False) -> None:
    """Show who holds what."""
    _run("nodes", as_json=as_json)


@app.command(
    help=(
        "Show tokens and estimated costs of the last days, by day, model and conversation.\n\n"
        "Example:  keryx usage --days 30"
    )
)
def usage(
    *,
    days: Annotated[int, typer.Option("--days", min=1, max=3_660, help="How many, today included.")] = 7,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Show what was used."""
    _run("usage", days=days, as_json=as_json)


@app.command("torture", help=TORTURE_HELP)
@functools.wraps(torture_gateways)
def torture(**options: Any) -> None:
    """Torture gateways."""
    try:
        torture_gateways(**options)
    except KeryxError as error:
        _fail(str(error))


def _run(name: str, **options: Any) -> NoReturn:
    """Run one of ``cli.running`` with the configuration, and leave with its exit code."""
    try:
        configuration: Configuration = load_config()
        code: int = getattr(importlib.import_module("keryx.cli.running"), name)(configuration, **options)
    except KeryxError as error:
        _fail(str(error))
    raise typer.Exit(code)


def _fail(sentence: str) -> NoReturn:
    for line in sentence.splitlines():
        typer.echo(f"keryx: {line}", err=True)
    raise typer.Exit(1)
