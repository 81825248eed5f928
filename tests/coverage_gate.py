"""How much of the source the tests must have run: a pytest plug-in that ``scripts/test`` loads with ``tests.workers``.

The ground is covered whole, branches included; every other part to nine tenths. The judgement is printed before
pytest's own summary, which stays the last word.

slipcover puts its marks into the code as it is loaded, so that measuring costs little; coverage's trace doubled the
time of every test. So the plug-in must be there before anything of Keryx is: it is named in ``PYTEST_PLUGINS``, which
is read before the first ``conftest.py``.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import slipcover

LAYERS = ("rules", "tables", "transactions", "views")
WHOLE = ("store", "rules", "tables", "transactions", "values")
OTHERS_PERCENT = 90.0
SOURCE = "src/keryx"
OMITTED = "*/__main__.py"
"""Two lines that a test runs in a process of their own."""
NEVER = 2**31 - 1
"""After so many hits a mark would be taken out of the code, which compares the globals of every frame and may hang."""
EXCLUDED = [
    r"@overload",
    r"class .*\(.*Protocol.*\):",
    r"raise AssertionError",
    r"assert_never\(",
]


class Gate:
    """What was run so far, of all workers."""

    def __init__(self) -> None:
        self.measured: dict[str, Any] | None = None
        self.shortfalls: list[str] = []

    def add(self, measured: dict[str, Any]) -> None:
        """Take what one worker ran."""
        self.measured = (
            measured if self.measured is None else slipcover.merge_coverage(self.measured, measured)
        )


_gate = Gate()


def _begin() -> slipcover.Slipcover:
    """Measure everything of Keryx that is loaded from now on."""
    measuring = slipcover.Slipcover(
        branch=True, source=[SOURCE], omit=[OMITTED], exclude_also=EXCLUDED, d_miss_threshold=NEVER
    )
    files = slipcover.FileMatcher(sources=[SOURCE], omit=[OMITTED])
    slipcover.ImportManager(measuring, files).__enter__()
    return measuring


_measuring = _begin()


def shortfalls(files: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each part that is not covered enough; ``files`` as slipcover tells of them."""
    parts: dict[str, list[tuple[str, Any]]] = defaultdict(list)
    for name, facts in sorted(files.items()):
        parts[_part_of(name)].append((name, facts))
    for part, members in parts.items():
        if part in WHOLE:
            yield from _holes(members)
        else:
            yield from _too_little(part, members)


def _part_of(name: str) -> str:
    """Return the package right under ``keryx``; in ``core``, the layer, or else ``core``."""
    below = [part.removesuffix(".py") for part in name.replace("\\", "/").split("keryx/", 1)[1].split("/")]
    if below[0] != "core":
        return below[0]
    if below[1] == "values":
        return below[1]
    return below[2] if below[2:] and below[2] in LAYERS else below[0]


def _holes(members: list[tuple[str, Any]]) -> Iterator[str]:
    for name, facts in members:
        lines = ", ".join(map(str, facts["missing_lines"]))
        branches = ", ".join(f"{start}->{end or 'exit'}" for start, end in facts["missing_branches"])
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
        hit = summary["covered_lines"] + summary["covered_branches"]
        there += hit + summary["missing_lines"] + summary["missing_branches"]
        run += hit
    percent = 100.0 * run / there if there else 100.0
    if percent < OTHERS_PERCENT:
        yield f"{part}: {percent:.1f} % covered, at least {OTHERS_PERCENT:.0f} % are asked for"


def pytest_worker_tells() -> dict[str, Any]:
    """Tell what this worker ran, and what was run before it was forked."""
    measured: dict[str, Any] = _measuring.get_coverage()
    return measured


def pytest_worker_told(told: list[Any]) -> None:
    """Take what a worker ran; one that crashed has nothing to tell."""
    for measured in told:
        _gate.add(measured)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run where something is not covered."""
    if session.exitstatus == pytest.ExitCode.INTERRUPTED:
        return
    assert _gate.measured is not None, "coverage is measured in workers: give --workers"
    _gate.shortfalls.extend(shortfalls(_gate.measured["files"]))
    if _gate.shortfalls and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what is missing."""
    if _gate.shortfalls:
        terminalreporter.section("coverage gate", red=True)
        for shortfall in _gate.shortfalls:
            terminalreporter.line(shortfall)
