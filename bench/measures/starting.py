"""What starting the command costs: ``keryx --version`` beside an interpreter that does nothing."""

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.report import Check, Row
from bench.run import Figures, Run

STARTS = 10
"""Starts per round, after one that warms the files."""


def measure_version(run: Run) -> list[Row]:
    """The command and the bare interpreter, in turn."""
    python = Path(sys.executable)
    script = python.with_name("keryx")
    if not script.exists():
        run.notes.append(f"version: not measured, because there is no {script}; scripts/bench installs it")
        return []
    command, nothing = [str(script), "--version"], [str(python), "-c", "pass"]
    _start(command)
    _start(nothing)
    ours: list[float] = []
    bare: list[float] = []
    for _ in range(run.rounds * STARTS):
        ours.append(_start(command))
        bare.append(_start(nothing))
    version, idle = statistics.median(ours), statistics.median(bare)
    check = Check(target="≤ python -c pass + 80 ms", actual=version - idle, bound=0.08, unit="seconds")
    figures: Figures = {"keryx": version, "raw": idle}
    return [
        Row(measure="keryx --version (raw: python -c pass)", unit="seconds", figures=figures, checks=(check,))
    ]


def _start(command: Sequence[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began
