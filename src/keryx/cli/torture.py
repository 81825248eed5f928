"""``keryx torture``: real gateways under real kills; what was tried, and what held.

It reads no configuration and touches no store of the user's.
"""

import asyncio
import importlib
import inspect
import logging
import sys
from typing import Annotated, Any, Final, NamedTuple

import typer

from keryx.ids import Ids
from keryx.testing.torture.options import Options
from keryx.testing.torture.report import Report

HELP: Final = """Kill, freeze and cut off real gateways under load, and see what holds.

Everything happens in a temporary folder; your own configuration and store are not touched. It ends with 1 when a
promise was broken, names the seed to run it again with, and keeps the folder.

Example:  keryx torture --kills 20
"""


TOLD_EVERY: Final = 200


class _Option(NamedTuple):
    kind: Any
    default: int | str | bool | None
    help: str


OPTIONS: Final = {
    "kills": _Option(int, 20, "How often a gateway is killed (kill -9) and started again at once."),
    "losses": _Option(int, 0, "How often one is killed and stays away for longer than its leases."),
    "freezes": _Option(int, 0, "How often one is frozen (SIGSTOP) for longer than its leases."),
    "restarts": _Option(int, 0, "How often PostgreSQL is stopped at once and started."),
    "gateways": _Option(int, 1, "How many gateways share the store; several need PostgreSQL."),
    "postgres": _Option(
        bool, default=False, help="On a private PostgreSQL server, made for this and gone after it."
    ),
    "database": _Option(str | None, None, "On this empty PostgreSQL database, which is filled and left so."),
    "messages": _Option(int, 100, "How many messages are sent at least."),
    "chats": _Option(int, 6, "How many chats speak at the same time."),
    "histories": _Option(
        int, 0, "How many histories are simulated before, in this process and in virtual time."
    ),
    "seed": _Option(int | None, None, "Carry out the plan of an earlier run."),
    "json": _Option(bool, default=False, help="Print the report as JSON."),
}


def torture(**given: Any) -> None:
    """Torture gateways and leave with what came of it."""
    as_json: bool = given.pop("json")
    histories: int = given.pop("histories")
    if given["seed"] is None:
        given["seed"] = int(Ids().token()[:6], 16)
    if not simulate(given["seed"], histories):
        raise typer.Exit(1)
    raise typer.Exit(show_report(_run(Options(**given)), as_json=as_json))


# Typer reads the options from a function's signature; so many are a table.
torture.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=option.default,
            annotation=Annotated[option.kind, typer.Option(f"--{name}", help=option.help)],
        )
        for name, option in OPTIONS.items()
    ]
)


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
