"""``keryx torture``: real gateways under real kills; what was tried, and what held.

It reads no configuration and touches no store of the user's.
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

HELP: Final = """Kill, freeze and cut off real gateways under load, and see what holds.

Everything happens in a temporary folder; your own configuration and store are not touched. It ends with 1 when a
promise was broken, names the seed to run it again with, and keeps the folder.

Example:  keryx torture --kills 20
"""


TOLD_EVERY: Final = 200

_NUMBERS: Final = {
    "kills": (20, "How often a gateway is killed (kill -9) and started again at once."),
    "losses": (0, "How often one is killed and stays away for longer than its leases."),
    "freezes": (0, "How often one is frozen (SIGSTOP) for longer than its leases."),
    "restarts": (0, "How often PostgreSQL is stopped at once and started."),
    "gateways": (1, "How many gateways share the store; several need PostgreSQL."),
    "messages": (100, "How many messages are sent at least."),
    "chats": (6, "How many chats speak at the same time."),
    "histories": (0, "How many histories are simulated before, in this process and in virtual time."),
    "seed": (None, "Carry out the plan of an earlier run."),
}


def _with_numbers(torture: Callable[..., None]) -> Callable[..., None]:
    for name, (default, told) in reversed(_NUMBERS.items()):
        option = click.option(f"--{name}", type=int, default=default, show_default=True, help=told)
        torture = option(torture)
    return torture


@click.command("torture", help=HELP)
@_with_numbers
@click.option(
    "--postgres", is_flag=True, help="On a private PostgreSQL server, made for this and gone after it."
)
@click.option(
    "--database", metavar="URL", help="On this empty PostgreSQL database, which is filled and left so."
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(*, as_json: bool, histories: int, seed: int | None, **given: Any) -> None:
    """Torture gateways and leave with what came of it."""
    if seed is None:
        seed = int(Ids().token()[:6], 16)
    if not simulate(seed, histories):
        raise click.exceptions.Exit(1)
    try:
        code = show_report(_run(Options(seed=seed, **given)), as_json=as_json)
    except KeryxError as error:
        _tell(str(error))
        code = 1
    raise click.exceptions.Exit(code)


def simulate(seed: int, histories: int) -> bool:
    """Play so many simulated histories from a seed on; tell what broke, and return whether nothing did."""
    if not histories:
        return True
    run = importlib.import_module("keryx.testing.simulator.history").run_histories
    broken = 0
    for number, breaches in run(range(seed, seed + histories)):
        for breach in breaches:
            _tell(f"history {number}: {breach}; play it again with --seed {number} --histories 1")
        broken += bool(breaches)
        if (number - seed + 1) % TOLD_EVERY == 0:
            _tell(f"{number - seed + 1} of {histories} histories simulated, {broken} broken")
    _tell(f"{histories} histories simulated from seed {seed} on: {broken or 'none'} broke a promise")
    return not broken


def show_report(report: Report, *, as_json: bool) -> int:
    """Print what came of it, and return the exit code."""
    print(report.to_json() if as_json else report.to_text(), flush=True)
    if report.held:
        return 0
    _tell(
        f"a promise was broken; run again with --seed {report.seed}. All that is known is in {report.folder}"
    )
    return 1


def _run(options: Options) -> Report:
    work = importlib.import_module("keryx.testing.torture.run").torture
    importlib.import_module("keryx.cli.running").configure_logging("error", "text")
    # It sets a level of its own, and tells of every connection that a restart cut.
    logging.getLogger("psycopg").setLevel("ERROR")
    report: Report = asyncio.run(work(options, tell=_tell))
    return report


def _tell(line: str) -> None:
    print(f"keryx: {line}", file=sys.stderr, flush=True)
