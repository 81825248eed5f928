"""``scripts/bench model``: run the measures, print the table, write the figures."""

import argparse
import json
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.driver import WorkerError
from bench.gateway.stores import Stores
from bench.model.measures import MEASURES, SIZES, ModelRun
from bench.model.provider import providing
from bench.report import Row, as_json, table, verdict

COLUMNS = ("bare", "keryx")


def run_model(chosen: argparse.Namespace, *, folder: Path, machine: Mapping[str, str]) -> int:
    """Measure what the command line asks for; the exit code says whether the run went through."""
    size = "quick" if chosen.quick else "full"
    rows: list[Row] = []
    failed: list[str] = []
    began = time.perf_counter()
    with ExitStack() as exits:
        url = exits.enter_context(providing())
        run = ModelRun(stores=Stores(folder / "model", exits), url=url, sizes=SIZES[size])
        for name in chosen.only:
            print(f"bench: {name}, {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
            try:
                rows += MEASURES[name](run)
            except (WorkerError, TimeoutError) as error:
                failed.append(f"given up: {name}: {str(error) or 'it took too long'}")
    print(f"Model, {size}, medians. {' · '.join(machine.values())}\n")
    print(table(rows, COLUMNS))
    for note in run.notes + failed:
        print(f"- {note}")
    print(f"\n{verdict(rows)}")
    if chosen.json:
        report: dict[str, Any] = {"size": size, "machine": dict(machine), "rows": as_json(rows)}
        report |= {"notes": run.notes + failed, "seconds": time.perf_counter() - began}
        chosen.json.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 1 if failed or not rows else 0
