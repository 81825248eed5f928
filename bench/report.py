"""What came out: rows of figures, the targets they are held to, and the two ways they are shown.

A target that could not be judged, because a contender was missing or failed, never counts as held.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from bench.environments import title

Unit = Literal["seconds", "per second", "bytes", "count"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One target of a row: a ratio (or a figure) and the bound it must keep."""

    target: str
    actual: float | None
    bound: float
    sense: Literal["at most", "at least"] = "at most"
    unit: Unit | None = None
    """The unit of *actual*; None for a ratio."""

    @property
    def holds(self) -> bool | None:
        """Whether the target is kept; None where it could not be judged."""
        if self.actual is None:
            return None
        return self.actual <= self.bound if self.sense == "at most" else self.actual >= self.bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measure: a figure by contender, and its targets."""

    measure: str
    unit: Unit
    figures: dict[str, float | None]
    checks: tuple[Check, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)


def at_most(factor: float, of: str, value: float | None, other: float | None) -> Check:
    """Hold *value* to at most *factor* times *other*, which the table calls *of*."""
    ratio = value / other if value is not None and other else None
    return Check(target=f"≤ {factor:.3g} × {of}", actual=ratio, bound=factor)


def at_least(factor: float, of: str, value: float | None, other: float | None) -> Check:
    """Hold *value* to at least *factor* times *other*, which the table calls *of*."""
    ratio = value / other if value is not None and other else None
    return Check(target=f"≥ {factor:.3g} × {of}", actual=ratio, bound=factor, sense="at least")


def below(bound: float, unit: Unit, value: float | None) -> Check:
    """Hold *value* to at most *bound*."""
    return Check(target=f"≤ {show(bound, unit)}", actual=value, bound=bound, unit=unit)


def show(value: float | None, unit: Unit | None) -> str:
    """Return a figure as people read it."""
    if value is None:
        return "–"
    if unit == "seconds":
        return _scaled(value, ((1, "s"), (1e-3, "ms"), (1e-6, "µs")))
    if unit == "bytes":
        return _scaled(value, ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")))
    if unit == "per second":
        return f"{value:,.0f}/s"
    return f"{value:,.0f}" if unit == "count" else f"{value:.2f}"


def table(rows: Sequence[Row], contenders: Sequence[str]) -> str:
    """Return the rows as a Markdown table, a further line for every further target."""
    lines = [["measure", *(title(contender) for contender in contenders), "ratio", "target", "holds?"]]
    for row in rows:
        figures = [show(row.figures.get(contender), row.unit) for contender in contenders]
        head, *more = [_judged(check) for check in row.checks] or [["", "", ""]]
        lines.append([row.measure, *figures, *head])
        lines += [["", *("" for _ in contenders), *judged] for judged in more]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(_aligned(line, widths) for line in lines)


def verdict(rows: Sequence[Row]) -> str:
    """Return a closing line that counts the targets and names those that were missed.

    A line and not an exit code: on a machine that does something else besides, targets are missed by noise.
    """
    judged = [(row.measure, check) for row in rows for check in row.checks]
    missed = [f"{measure} ({check.target})" for measure, check in judged if check.holds is False]
    held = sum(check.holds is True for _, check in judged)
    named = f": {'; '.join(missed)}" if missed else ""
    return f"Targets: {held} held, {len(judged) - held - len(missed)} not judged, {len(missed)} MISSED{named}"


def as_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the rows with every figure in its base unit."""
    return [
        {
            "measure": row.measure,
            "unit": row.unit,
            "figures": row.figures,
            "checks": [
                {"target": check.target, "actual": check.actual, "bound": check.bound, "holds": check.holds}
                for check in row.checks
            ],
            "details": row.details,
        }
        for row in rows
    ]


def _judged(check: Check) -> list[str]:
    return [
        show(check.actual, check.unit),
        check.target,
        {True: "yes", False: "NO", None: "not judged"}[check.holds],
    ]


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = zip(line, widths, strict=True)
    cells = [first[0].ljust(first[1]), *(text.rjust(width) for text, width in rest)]
    return "| " + " | ".join(cells) + " |"


def _scaled(value: float, scales: Sequence[tuple[float, str]]) -> str:
    factor, unit = next((scale for scale in scales if value >= scale[0]), scales[-1])
    scaled = value / factor
    return f"{scaled:.0f} {unit}" if scaled >= 100 else f"{scaled:.3g} {unit}"
