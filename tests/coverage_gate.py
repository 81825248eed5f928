"""How much of the source the tests must have run, as a pytest plug-in of ``scripts/test``.

The ground is covered whole, branches included; every other part to nine tenths. The judgement is printed before
pytest's own summary, which stays the last word.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

WHOLE = ("domain", "store", "transactions")
OTHERS_PERCENT = 90.0
REPORT = Path(".coverage.json")

_shortfalls: list[str] = []


def shortfalls(files: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each part that is not covered enough; ``files`` as in coverage's JSON report."""
    parts: dict[str, list[tuple[str, Any]]] = defaultdict(list)
    for name, facts in sorted(files.items()):
        parts[_part_of(name)].append((name, facts))
    for part, members in parts.items():
        if part in WHOLE:
            yield from _holes(members)
        else:
            yield from _too_little(part, members)


def _part_of(name: str) -> str:
    """Return the package right under ``keryx``, or the module that stands there by itself."""
    below = name.replace("\\", "/").split("keryx/", 1)[1]
    return below.split("/", 1)[0].removesuffix(".py")


def _holes(members: list[tuple[str, Any]]) -> Iterator[str]:
    for name, facts in members:
        lines = ", ".join(map(str, facts["missing_lines"]))
        branches = ", ".join(f"{start}->{end}" for start, end in facts.get("missing_branches", []))
        if lines and not facts["summary"]["covered_lines"]:
            yield f"{name}: no test loads it"
            continue
        if lines:
            yield f"{name}: no test runs line {lines}"
        if branches:
            yield f"{name}: no test takes branch {branches}"


def _too_little(part: str, members: list[tuple[str, Any]]) -> Iterator[str]:
    there = run = 0
    for _, facts in members:
        summary = facts["summary"]
        there += summary["num_statements"] + summary.get("num_branches", 0)
        run += summary["covered_lines"] + summary.get("covered_branches", 0)
    percent = 100.0 * run / there if there else 100.0
    if percent < OTHERS_PERCENT:
        yield f"{part}: {percent:.1f} % covered, at least {OTHERS_PERCENT:.0f} % are asked for"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run when something is not covered; pytest-cov has written its report by now."""
    if hasattr(session.config, "workerinput"):
        return
    report = json.loads(REPORT.read_text(encoding="utf-8"))
    _shortfalls.extend(shortfalls(report["files"]))
    if _shortfalls and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what is missing."""
    if _shortfalls:
        terminalreporter.section("coverage gate", red=True)
        for shortfall in _shortfalls:
            terminalreporter.line(shortfall)
