"""Counters and durations of one gateway's loops since its start, for people who watch it. No decision uses them."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import accumulate
from typing import Any, Final, Literal, get_args

from keryx.core.values.turn_states import TurnPurpose
from keryx.values import dataclass

UpdateOutcome = Literal["accepted", "duplicate", "refused", "malformed"]
TurnEnd = Literal["answered", "failed", "retried", "stopped", "rolled_back", "waiting", "handed_back", "lost"]
DeliveryOutcome = Literal["sent", "retried", "unknown", "failed", "taken_over"]
RecoveredKind = Literal["turn", "delivery"]

BOUNDS_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
PREFIX: Final = "keryx_"


class Durations:
    """A histogram of durations: how many fall between two bounds, and their sum."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_SECONDS) + 1)
        self.seconds = 0.0

    def observe(self, seconds: float) -> None:
        """Count a duration; a negative one, after the clock was set back, counts as 0."""
        seconds = max(0.0, seconds)
        self._counts[bisect_left(BOUNDS_SECONDS, seconds)] += 1
        self.seconds += seconds

    @property
    def count(self) -> int:
        """The number of durations."""
        return sum(self._counts)

    @property
    def up_to(self) -> list[tuple[float, int]]:
        """Each bound, with the number of durations up to it."""
        return list(zip(BOUNDS_SECONDS, accumulate(self._counts), strict=False))


def _counter(kinds: object) -> Any:
    """Return a counter of all kinds of events; a kind that never happened counts 0."""
    return field(default_factory=lambda: Counter(dict.fromkeys(get_args(kinds), 0)))


@dataclass(frozen=True, slots=True)
class Metrics:
    """The numbers of one gateway, since its start."""

    updates: Counter[UpdateOutcome] = _counter(UpdateOutcome)
    turns_begun: Counter[TurnPurpose] = _counter(TurnPurpose)
    turns_ended: Counter[TurnEnd] = _counter(TurnEnd)
    deliveries: Counter[DeliveryOutcome] = _counter(DeliveryOutcome)
    recovered: Counter[RecoveredKind] = _counter(RecoveredKind)
    update_to_agent: Durations = field(default_factory=Durations)
    token_to_send: Durations = field(default_factory=Durations)

    @property
    def turns_running(self) -> int:
        """The number of turns that have begun here and not ended."""
        return self.turns_begun.total() - self.turns_ended.total()


def render(metrics: Metrics) -> str:
    """Return the numbers in Prometheus's text format."""
    return "\n".join(_lines(metrics)) + "\n"


def summary(metrics: Metrics) -> str:
    """Return the events that happened, in one line."""
    counters: dict[str, Mapping[Any, int]] = {
        "updates": metrics.updates,
        "turns": metrics.turns_ended,
        "deliveries": metrics.deliveries,
        "recovered": metrics.recovered,
    }
    parts = [
        f"{name} {', '.join(f'{kind} {count}' for kind, count in counter.items() if count)}"
        for name, counter in counters.items()
        if any(counter.values())
    ]
    return "; ".join(parts) or "nothing happened"


def _lines(metrics: Metrics) -> Iterator[str]:
    counters: list[tuple[str, str, str, Mapping[Any, int]]] = [
        ("updates_total", "Updates of platforms, by outcome.", "outcome", metrics.updates),
        ("turns_begun_total", "Turns begun, by purpose.", "purpose", metrics.turns_begun),
        ("turns_ended_total", "Turns that ended here, by kind of end.", "end", metrics.turns_ended),
        ("deliveries_total", "Attempts to send a delivery, by outcome.", "outcome", metrics.deliveries),
        ("recovered_total", "Unfinished work of a crash that was recovered.", "kind", metrics.recovered),
    ]
    for name, text, label, counter in counters:
        yield from _head(name, text, "counter")
        for kind, count in counter.items():
            yield f'{PREFIX}{name}{{{label}="{kind}"}} {count}'
    yield from _head("turns_running", "Turns that run now.", "gauge")
    yield f"{PREFIX}turns_running {metrics.turns_running}"
    histograms = [
        ("update_to_agent", "From storing a message to calling the agent.", metrics.update_to_agent),
        ("token_to_send", "From the end of an answer to sending it.", metrics.token_to_send),
    ]
    for name, text, durations in histograms:
        yield from _histogram(f"{name}_seconds", text, durations)


def _head(name: str, text: str, kind: str) -> Iterator[str]:
    yield f"# HELP {PREFIX}{name} {text}"
    yield f"# TYPE {PREFIX}{name} {kind}"


def _histogram(name: str, text: str, durations: Durations) -> Iterator[str]:
    yield from _head(name, text, "histogram")
    for bound, count in durations.up_to:
        yield f'{PREFIX}{name}_bucket{{le="{bound}"}} {count}'
    yield f'{PREFIX}{name}_bucket{{le="+Inf"}} {durations.count}'
    yield f"{PREFIX}{name}_sum {durations.seconds:.6f}"
    yield f"{PREFIX}{name}_count {durations.count}"
