"""``python -m bench store``, ``gateway`` and ``model``: run the measures, print the table, write the figures.

The exit code says whether the run went through, not whether the targets held: figures of a busy machine are
figures too.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.corpus import choose_queries, ensure_corpus
from bench.driver import REPOSITORY, Bench, WorkerError
from bench.environments import OURS, PEERS, interpreter, title
from bench.gateway.measures import MEASURES as GATEWAY_MEASURES
from bench.gateway.run import run_gateway
from bench.measures import MEASURES
from bench.model.measures import MEASURES as MODEL_MEASURES
from bench.model.run import run_model
from bench.postgres import Databases
from bench.report import Row, as_json, table, verdict
from bench.run import SIZES, Run

FOLDER = REPOSITORY / ".bench"
GIVEN_UP = "given up:"
"""How notes about measures begin that did not go through; the others still do."""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the command line's choices, or end with a sentence about what is wrong with it."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description="Measure Keryx beside its limit and its peers."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    store = commands.add_parser(
        "store",
        help="the store: append, load, list, search",
        epilog="example: scripts/bench store --size small --peers hermes --only append,load",
    )
    store.add_argument(
        "--size",
        choices=SIZES,
        default="small",
        help="small: about 3 minutes, full: about an hour; peers come on top",
    )
    store.add_argument("--peers", type=_names(PEERS), default=(), help=f"a comma list of {', '.join(PEERS)}")
    store.add_argument(
        "--only", type=_names(MEASURES), default=tuple(MEASURES), help="a comma list of measures"
    )
    store.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    store.add_argument("--rounds", type=int, default=3, help="interleaved rounds; figures are their medians")
    store.add_argument("--keep", action="store_true", help="keep the filled stores, and use kept ones again")
    gateway = commands.add_parser(
        "gateway",
        help="the gateway: turns, what it adds to each, starting, memory",
        epilog="example: scripts/bench gateway --quick --only turns,overhead",
    )
    gateway.add_argument("--quick", action="store_true", help="one to two minutes instead of about seven")
    gateway.add_argument(
        "--only",
        type=_names(GATEWAY_MEASURES),
        default=tuple(GATEWAY_MEASURES),
        help="a comma list of measures",
    )
    gateway.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    model = commands.add_parser(
        "model",
        help="a model's turns: what is added to its tokens, stopping, starting, memory",
        epilog="example: scripts/bench model --quick --only tokens,stop",
    )
    model.add_argument("--quick", action="store_true", help="about half a minute instead of two")
    model.add_argument(
        "--only", type=_names(MODEL_MEASURES), default=tuple(MODEL_MEASURES), help="a comma list of measures"
    )
    model.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Run what the command line asks for."""
    chosen = parse(arguments)
    if chosen.command == "gateway":
        return run_gateway(chosen, folder=FOLDER, machine=_machine())
    if chosen.command == "model":
        return run_model(chosen, folder=FOLDER, machine=_machine())
    return _run_store(chosen)


def _run_store(chosen: argparse.Namespace) -> int:
    contenders = (*OURS, *chosen.peers)
    for contender in contenders:
        interpreter(contender, FOLDER)
    began = time.perf_counter()
    with ExitStack() as exits:
        run = _prepare(chosen, contenders, exits)
        rows = _measure(run, chosen.only)
    print(
        f"Size {chosen.size}, medians of {chosen.rounds} interleaved rounds. {' · '.join(_machine().values())}\n"
    )
    print(table(rows, contenders))
    for line in [f"{title(contender)}: {facts}" for contender, facts in run.facts.items()] + run.notes:
        print(f"- {line}")
    print(f"\n{verdict(rows)}")
    if chosen.json:
        report = {"size": chosen.size, "rounds": chosen.rounds, "machine": _machine(), "facts": run.facts}
        report |= {"rows": as_json(rows), "notes": run.notes, "seconds": time.perf_counter() - began}
        chosen.json.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0 if rows and not any(note.startswith(GIVEN_UP) for note in run.notes) else 1


def _measure(run: Run, names: Sequence[str]) -> list[Row]:
    """Return the rows of all measures, as far as they went; small runs show only what has a target."""
    rows: list[Row] = []
    began = time.perf_counter()
    for name in names:
        print(f"bench: {name}, {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
        try:
            rows += MEASURES[name](run)
        except WorkerError as error:
            run.notes.append(f"{GIVEN_UP} {name}: {error}")
    return [row for row in rows if row.checks or run.sizes.thorough]


def _prepare(chosen: argparse.Namespace, contenders: tuple[str, ...], exits: ExitStack) -> Run:
    sizes = SIZES[chosen.size]
    corpus = ensure_corpus(FOLDER, sizes.large_messages)
    stores = FOLDER / "stores" / chosen.size
    if not chosen.keep:
        shutil.rmtree(stores, ignore_errors=True)
        exits.callback(shutil.rmtree, stores, ignore_errors=True)
    return Run(
        bench=Bench(folder=FOLDER, corpus=corpus),
        stores=stores,
        sizes=sizes,
        rounds=chosen.rounds,
        contenders=contenders,
        queries=choose_queries(corpus),
        databases=Databases(exits),
        keep=chosen.keep,
    )


def _names(known: Iterable[str]) -> Callable[[str], tuple[str, ...]]:
    """Return a parser of comma lists that refuses unknown names and keeps the known order."""
    order = tuple(known)

    def parse_list(text: str) -> tuple[str, ...]:
        wanted = {name.strip() for name in text.split(",") if name.strip()}
        if strangers := wanted - set(order):
            known_names = ", ".join(order)
            raise argparse.ArgumentTypeError(
                f"{', '.join(sorted(strangers))}: unknown; choose from {known_names}"
            )
        return tuple(name for name in order if name in wanted)

    return parse_list


def _machine() -> dict[str, str]:
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        "commit": f"commit {commit.stdout.strip() or 'unknown'}",
        "python": f"Python {platform.python_version()}",
        "system": f"{platform.system()} {platform.release()}",
        "cores": f"{os.cpu_count()} cores",
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
