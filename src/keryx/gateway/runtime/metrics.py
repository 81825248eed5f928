"""What the loops of one gateway have done since it started, as numbers.

Every event costs a few additions, however many there were. Nothing decides by them: they are for people who watch.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import field
from typing import Any, Final, Generic, Literal, LiteralString, TypeVar, get_args

from keryx.core.values.turn_states import TurnPurpose
from keryx.values import dataclass

UpdateOutcome = Literal["accepted", "duplicate", "refused", "malformed"]
TurnEnd = Literal["answered", "failed", "retried", "stopped", "rolled_back", "waiting", "handed_back", "lost"]
DeliveryOutcome = Literal["sent", "retried", "unknown", "failed", "taken_over"]
RecoveredKind = Literal["turn", "delivery"]

BOUNDS_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
PREFIX: Final = "keryx_"

L = TypeVar("L", bound=LiteralString)


class Counter(Generic[L]):
    """Counts events of a few kinds; one that never happened counts 0."""

    def __init__(self, kinds: object) -> None:
        self._counts: dict[L, int] = dict.fromkeys(get_args(kinds), 0)

    def count(self, kind: L, times: int = 1) -> None:
        """Count an event, or several at once."""
        self._counts[kind] += times

    def __getitem__(self, kind: L) -> int:
        """Return how often it happened."""
        return self._counts[kind]

    @property
    def counts(self) -> dict[L, int]:
        """Every kind and how often it happened."""
        return dict(self._counts)


class Durations:
    """Counts durations in fixed classes, so that their spread can be told without keeping them."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_SECONDS) + 1)
        self.seconds = 0.0

    def observe(self, seconds: float) -> None:
        """Count one; a clock that was set back in between makes it 0."""
        seconds = max(0.0, seconds)
        self._counts[bisect_left(BOUNDS_SECONDS, seconds)] += 1
        self.seconds += seconds

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self._counts)

    @property
    def up_to(self) -> list[tuple[float, int]]:
        """How many were not longer than each bound."""
        found, total = [], 0
        for bound, count in zip(BOUNDS_SECONDS, self._counts, strict=False):
            total += count
            found.append((bound, total))
        return found


@dataclass(frozen=True, slots=True)
class Metrics:
    """The numbers of one gateway, since its start."""

    updates: Counter[UpdateOutcome] = field(default_factory=lambda: Counter(UpdateOutcome))
    turns_begun: Counter[TurnPurpose] = field(default_factory=lambda: Counter(TurnPurpose))
    turns_ended: Counter[TurnEnd] = field(default_factory=lambda: Counter(TurnEnd))
    deliveries: Counter[DeliveryOutcome] = field(default_factory=lambda: Counter(DeliveryOutcome))
    recovered: Counter[RecoveredKind] = field(default_factory=lambda: Counter(RecoveredKind))
    update_to_agent: Durations = field(default_factory=Durations)
    token_to_send: Durations = field(default_factory=Durations)

    @property
    def turns_running(self) -> int:
        """How many turns have begun here and not ended."""
        return sum(self.turns_begun.counts.values()) - sum(self.turns_ended.counts.values())


def render(metrics: Metrics) -> str:
    """Return the numbers as Prometheus reads them."""
    return "\n".join(_lines(metrics)) + "\n"


def summary(metrics: Metrics) -> str:
    """Return in one line what happened, and nothing of what did not."""
    told: dict[str, Counter[Any]] = {
        "updates": metrics.updates,
        "turns": metrics.turns_ended,
        "deliveries": metrics.deliveries,
        "recovered": metrics.recovered,
    }
    parts = [
        f"{name} {', '.join(f'{kind} {count}' for kind, count in tally.counts.items() if count)}"
        for name, tally in told.items()
        if any(tally.counts.values())
    ]
    return "; ".join(parts) or "nothing happened"


def _lines(metrics: Metrics) -> Iterator[str]:
    yield from _tally(
        "updates_total", "Updates of platforms, by what became of them.", "outcome", metrics.updates
    )
    yield from _tally("turns_begun_total", "Turns begun, by what for.", "purpose", metrics.turns_begun)
    yield from _tally("turns_ended_total", "Turns that ended here, by how.", "end", metrics.turns_ended)
    yield from _head("turns_running", "Turns that run now.", "gauge")
    yield f"{PREFIX}turns_running {metrics.turns_running}"
    yield from _tally(
        "deliveries_total",
        "Attempts to send a delivery, by what came of them.",
        "outcome",
        metrics.deliveries,
    )
    yield from _tally("recovered_total", "What a crash left and was taken up.", "kind", metrics.recovered)
    yield from _durations(
        "update_to_agent_seconds",
        "From the storing of a message to the agent's call.",
        metrics.update_to_agent,
    )
    yield from _durations(
        "token_to_send_seconds", "From the end of an answer to its sending.", metrics.token_to_send
    )


def _head(name: str, told: str, kind: str) -> Iterator[str]:
    yield f"# HELP {PREFIX}{name} {told}"
    yield f"# TYPE {PREFIX}{name} {kind}"


def _tally(name: str, told: str, label: str, tally: Counter[L]) -> Iterator[str]:
    yield from _head(name, told, "counter")
    for kind, count in tally.counts.items():
        yield f'{PREFIX}{name}{{{label}="{kind}"}} {count}'


def _durations(name: str, told: str, durations: Durations) -> Iterator[str]:
    yield from _head(name, told, "histogram")
    for bound, count in durations.up_to:
        yield f'{PREFIX}{name}_bucket{{le="{bound}"}} {count}'
    yield f'{PREFIX}{name}_bucket{{le="+Inf"}} {durations.count}'
    yield f"{PREFIX}{name}_sum {durations.seconds:.6f}"
    yield f"{PREFIX}{name}_count {durations.count}"
