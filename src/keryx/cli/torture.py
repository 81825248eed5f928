"""``keryx torture``: crash real gateways under load, and report whether the guarantees held.

The command reads no configuration and does not open the user's store.
"""

import asyncio
import importlib
import logging
import sys
from collections.abc import Callable
from typing import Any, Final

import click

from keryx.errors import KeryxError
from keryx.ids import Ids
from keryx.testing.torture.options import Options
from keryx.testing.torture.report import Report

PROGRESS_EVERY: Final = 200
"""How many histories are simulated between two lines of progress."""

_NUMBERS: Final = {
    "kills": (20, "How often a gateway is killed (kill -9) and restarted at once."),
    "losses": (0, "How often a gateway is killed and stays down for longer than its leases."),
    "freezes": (0, "How often a gateway is frozen (SIGSTOP) for longer than its leases."),
    "restarts": (0, "How often PostgreSQL is stopped immediately and restarted."),
    "gateways": (1, "How many gateways share the store; several need PostgreSQL."),
    "messages": (100, "The least number of messages to send."),
    "chats": (6, "How many chats are active at the same time."),
    "histories": (0, "How many histories are simulated first, in this process and in virtual time."),
    "seed": (None, "Repeat the plan of an earlier run."),
}


def _with_numbers(torture: Callable[..., None]) -> Callable[..., None]:
    for name, (default, text) in reversed(_NUMBERS.items()):
        option = click.option(f"--{name}", type=int, default=default, show_default=True, help=text)
        torture = option(torture)
    return torture


@click.command("torture")
@_with_numbers
@click.option("--postgres", is_flag=True, help="Use a private, temporary PostgreSQL server.")
@click.option(
    "--database", metavar="URL", help="Use this empty PostgreSQL database, and leave the data in it."
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(*, as_json: bool, histories: int, seed: int | None, **given: Any) -> None:
    """Kill and freeze real gateways under load, and check them.

    Everything happens in a temporary folder; your own configuration and store are not touched. If a guarantee was
    broken, the exit code is 1, the seed for another run is printed, and the folder is kept.

    Example:  keryx torture --kills 20
    """
    if seed is None:
        seed = int(Ids().token()[:6], 16)
    if not simulate(seed, histories):
        raise click.exceptions.Exit(1)
    try:
        code = print_report(_run(Options(seed=seed, **given)), as_json=as_json)
    except KeryxError as error:
        _print_progress(str(error))
        code = 1
    raise click.exceptions.Exit(code)


def simulate(seed: int, histories: int) -> bool:
    """Simulate a number of histories, beginning with a seed; print each failure, and return whether all passed."""
    if not histories:
        return True
    run = importlib.import_module("keryx.testing.simulator.history").run_histories
    broken = 0
    for number, breaches in run(range(seed, seed + histories)):
        for breach in breaches:
            _print_progress(f"history {number}: {breach}; repeat it with --seed {number} --histories 1")
        broken += bool(breaches)
        if (number - seed + 1) % PROGRESS_EVERY == 0:
            _print_progress(f"{number - seed + 1} of {histories} histories simulated, {broken} broken")
    _print_progress(f"{histories} histories simulated from seed {seed}: {broken or 'none'} broke a guarantee")
    return not broken


def print_report(report: Report, *, as_json: bool) -> int:
    """Print the report, and return the exit code."""
    print(report.to_json() if as_json else report.to_text(), flush=True)
    if report.held:
        return 0
    _print_progress(
        f"a guarantee was broken; repeat with --seed {report.seed}. The logs are in {report.folder}"
    )
    return 1


def _run(options: Options) -> Report:
    work = importlib.import_module("keryx.testing.torture.run").torture
    importlib.import_module("keryx.cli.log").configure_logging("error", "text")
    # psycopg sets its own level, and logs every connection that a restart cut.
    logging.getLogger("psycopg").setLevel("ERROR")
    report: Report = asyncio.run(work(options, tell=_print_progress))
    return report


def _print_progress(line: str) -> None:
    print(f"keryx: {line}", file=sys.stderr, flush=True)
