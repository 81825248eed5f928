"""What is measured of the gateway, as rows with the targets of the issue that asked for it.

Rounds go through both databases, and through an empty store and a full one, in turn, so that a slow minute of the
machine falls on all of them; figures are medians of the rounds.
"""

import asyncio
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from bench.environments import title
from bench.gateway import serving
from bench.gateway.load import Burst, Latencies, Place, Rate, accept, burst, converse, offer
from bench.gateway.raw import WRITES_PER_TURN, commit_turns
from bench.gateway.stores import Kind, Stores, chat_name
from bench.report import Check, Row, Unit, at_most, below

CHATS = 64
LIVE = 200
OFFERED_PER_SECOND = 50.0
OVERHEAD_P50 = 0.010
OVERHEAD_P99 = 0.050
TURNS_PER_SECOND = 200.0
START_SECONDS = 1.0
START_RATIO = 1.2
IDLE_BYTES = 80e6
CHATS_BYTES = 50e6
PRINT_SECONDS = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is stored and how long is measured."""

    rounds: int
    sessions: int
    """How many conversations a full store holds."""
    accepts: int
    seconds: float
    """How long turns are counted, or offered, in one round."""
    crowd: int
    """Chats that speak at once."""
    starts: int
    idle_chats: int


SIZES = {
    "quick": Sizes(
        rounds=1, sessions=10_000, accepts=1_000, seconds=4.0, crowd=1_000, starts=3, idle_chats=200
    ),
    "full": Sizes(
        rounds=3, sessions=100_000, accepts=1_000, seconds=10.0, crowd=1_000, starts=9, idle_chats=1_000
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayRun:
    """Everything a measure needs."""

    stores: Stores
    sizes: Sizes
    notes: list[str] = field(default_factory=list)

    def each_kind(self, work: Callable[[Place], object]) -> None:
        """Do something on a new, empty store of each kind, in every round."""
        for _ in range(self.sizes.rounds):
            for kind in self.stores.kinds:
                self.on(kind, work)

    def on(self, kind: Kind, work: Callable[[Place], object], *, sessions: int = 0) -> None:
        """Do something on a new store."""
        place = self.stores.make(kind, sessions=sessions)
        try:
            work(place)
        finally:
            self.stores.drop(place)


def kind_of(place: Place) -> str:
    """Return the database of a place, which is its column."""
    return "postgres" if place.database.startswith("postgresql") else "sqlite"


def percentile(seconds: Sequence[float], part: float) -> float:
    """Return the value below which this part of all lie."""
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def measure_accept(run: GatewayRun) -> list[Row]:
    """Messages of 64 chats that wait already, taken in while no turn runs."""
    rates: dict[str, list[float]] = {}

    def work(place: Place) -> None:
        rate = asyncio.run(accept(place, messages=run.sizes.accepts, chats=CHATS))
        rates.setdefault(kind_of(place), []).append(rate)

    run.each_kind(work)
    return [_row("messages accepted, one account", "per second", rates)]


def measure_turns(run: GatewayRun) -> list[Row]:
    """Chats that say the next thing as soon as they are answered, beside the bare commits of as many turns."""
    rates: dict[str, list[Rate]] = {}
    bare: list[float] = []

    def work(place: Place) -> None:
        if kind_of(place) == "sqlite":
            bare.append(commit_turns(place.folder / "raw.db", seconds=run.sizes.seconds / 5))
        rate = asyncio.run(converse(place, chats=CHATS, seconds=run.sizes.seconds))
        rates.setdefault(kind_of(place), []).append(rate)

    run.each_kind(work)
    turns = {kind: [rate.turns_per_second for rate in some] for kind, some in rates.items()}
    reached = statistics.median(turns["sqlite"])
    commits = statistics.median(rate.commits_per_turn or 0.0 for rate in rates["sqlite"])
    cpu = statistics.median(rate.cpu_per_turn for rate in rates["sqlite"])
    run.notes.append(
        f"turns on SQLite are {reached / statistics.median(bare):.2f} × the raw limit, a bare loop of "
        f"{WRITES_PER_TURN} durable commits a turn; the gateway's {WRITES_PER_TURN} writes a turn shared "
        f"{commits:.1f} commits and took {cpu * 1e3:.1f} ms of processor time"
    )
    check = Check(
        target=f"≥ {TURNS_PER_SECOND:.0f}/s",
        actual=reached,
        bound=TURNS_PER_SECOND,
        sense="at least",
        unit="per second",
    )
    return [_row(f"turns end to end, {CHATS} chats", "per second", turns | {"raw": bare}, check)]


def measure_overhead(run: GatewayRun) -> list[Row]:
    """What Keryx adds to a turn at 50 turns a second, on an empty store and on a full one in turn."""
    found: dict[tuple[str, int], list[Latencies]] = {}
    full = run.sizes.sessions
    chats = {
        # Spread over the whole history, as those are that happen to be live.
        full: [chat_name(number * (full // LIVE)) for number in range(LIVE)],
        0: [f"chat-{number}" for number in range(LIVE)],
    }

    for _ in range(run.sizes.rounds):
        for kind in run.stores.kinds:
            for sessions, live in chats.items():

                def work(place: Place, sessions: int = sessions, live: Sequence[str] = live) -> None:
                    latencies = asyncio.run(
                        offer(place, chats=live, per_second=OFFERED_PER_SECOND, seconds=run.sizes.seconds)
                    )
                    found.setdefault((kind_of(place), sessions), []).append(latencies)

                run.on(kind, work, sessions=sessions)
    rows = _overhead_rows(found, sessions=0)
    more = _overhead_rows(found, sessions=full)
    for kind in run.stores.kinds:
        levels = zip(("p50", "p99"), rows[-2:], more[-2:], strict=True)
        ratios = [f"{name} {_ratio(filled, empty, kind):.2f}" for name, empty, filled in levels]
        run.notes.append(f"{full:,} stored sessions, ratio to an empty store on {kind}: {', '.join(ratios)}")
    return rows + more


def _ratio(row: Row, other: Row, kind: str) -> float:
    value, base = row.figures[kind], other.figures[kind]
    assert value is not None, "both were measured"
    assert base is not None, "both were measured"
    return value / base


def _overhead_rows(found: dict[tuple[str, int], list[Latencies]], *, sessions: int) -> list[Row]:
    where = f", {LIVE} live of {sessions:,}" if sessions else ""
    parts: dict[str, Callable[[Latencies], list[float]]] = {
        "update → agent": lambda latencies: latencies.before_agent,
        "last token → send": lambda latencies: latencies.after_agent,
        "both": lambda latencies: latencies.together,
    }
    rows = []
    for name, part in parts.items():
        for level, label, bound in ((0.5, "p50", OVERHEAD_P50), (0.99, "p99", OVERHEAD_P99)):
            values = {
                kind: [percentile(part(latencies), level) for latencies in rounds]
                for (kind, stored), rounds in found.items()
                if stored == sessions
            }
            reached = statistics.median(values["sqlite"])
            checks = (below(bound, "seconds", reached),) if name == "both" else ()
            rows.append(_row(f"{name} {label}{where}", "seconds", values, *checks))
    return rows


def measure_crowd(run: GatewayRun) -> list[Row]:
    """New chats that all speak at the same moment."""
    found: dict[str, list[Burst]] = {}

    def work(place: Place) -> None:
        found.setdefault(kind_of(place), []).append(asyncio.run(burst(place, chats=run.sizes.crowd)))

    run.each_kind(work)
    name = f"{run.sizes.crowd:,} new chats at once"
    everybody = {kind: [each.all_seconds for each in some] for kind, some in found.items()}
    worst = {kind: [each.worst_seconds for each in some] for kind, some in found.items()}
    return [
        _row(f"{name}: all answered", "seconds", everybody),
        _row(f"{name}: worst wait", "seconds", worst),
    ]


def measure_start(run: GatewayRun) -> list[Row]:
    """``keryx serve`` to its ready line and its open port, on empty stores and on full ones in turn."""
    full = run.sizes.sessions
    places = [
        (run.stores.make(kind, sessions=sessions), sessions)
        for kind in run.stores.kinds
        for sessions in (0, full)
    ]
    seconds: dict[int, dict[str, list[float]]] = {0: {}, full: {}}
    # The first start makes the store, and warms the files.
    for number in range(run.sizes.starts + 1):
        for place, sessions in places:
            with serving.serve(place) as served:
                if number:
                    seconds[sessions].setdefault(kind_of(place), []).append(served.seconds)
    for place, _ in places:
        run.stores.drop(place)
    empty = _row("serve to ready, no sessions", "seconds", seconds[0])
    filled = _row(f"serve to ready, {full:,} sessions", "seconds", seconds[full])
    checks = [
        _on(kind, check)
        for kind in run.stores.kinds
        for check in (
            below(START_SECONDS, "seconds", filled.figures[kind]),
            at_most(START_RATIO, "no sessions", filled.figures[kind], empty.figures[kind]),
        )
    ]
    return [empty, replace(filled, checks=tuple(checks))]


def measure_memory(run: GatewayRun) -> list[Row]:
    """What an idle ``keryx serve`` holds, and how much more after many chats were answered."""
    chats = run.sizes.idle_chats
    idle: dict[str, list[float]] = {}
    more: dict[str, list[float]] = {}

    def work(place: Place) -> None:
        before, after = asyncio.run(_memory_before_and_after(place, chats=chats))
        kind = kind_of(place)
        idle[kind], more[kind] = [before.rss], [after.rss - before.rss]
        run.notes.append(
            f"PSS of serve on {kind}: {before.pss / 1e6:.0f} MB idle, {after.pss / 1e6:.0f} MB after {chats:,} chats"
        )

    for kind in run.stores.kinds:
        run.on(kind, work)
    return [
        _row("serve, idle: RSS", "bytes", idle, *_each_below(IDLE_BYTES, "bytes", idle)),
        _row(
            f"serve, {chats:,} idle live chats add", "bytes", more, *_each_below(CHATS_BYTES, "bytes", more)
        ),
    ]


async def _memory_before_and_after(place: Place, *, chats: int) -> tuple[serving.Memory, serving.Memory]:
    await serving.let_programs_in(place)
    callback = serving.Callback()
    url = await callback.open()
    try:
        with serving.serve(place, callback=url) as served:
            before = await serving.idle_memory(served.pid)
            await serving.speak(served.url, chats=chats)
            await callback.until(chats)
            return before, await serving.idle_memory(served.pid)
    finally:
        await callback.close()


def measure_print(run: GatewayRun) -> list[Row]:
    """``keryx --print hello``, after one that warms the files."""
    seconds: dict[str, list[float]] = {}

    def work(place: Place) -> None:
        seconds[kind_of(place)] = [serving.print_hello(place) for _ in range(run.sizes.starts + 1)][1:]

    for kind in run.stores.kinds:
        run.on(kind, work)
    checks = _each_below(PRINT_SECONDS, "seconds", seconds)
    return [_row("keryx --print hello, warm", "seconds", seconds, *checks)]


def _each_below(bound: float, unit: Unit, values: dict[str, list[float]]) -> list[Check]:
    """Hold the median on each database to the same bound."""
    return [_on(kind, below(bound, unit, statistics.median(some))) for kind, some in values.items()]


def _on(kind: str, check: Check) -> Check:
    """Say in a target of which database it is."""
    return replace(check, target=f"{check.target}, {title(kind)}")


def _row(measure: str, unit: Unit, values: dict[str, list[float]], *checks: Check) -> Row:
    """Return a row of medians, with every round's value in the details."""
    figures: dict[str, float | None] = {kind: statistics.median(each) for kind, each in values.items()}
    return Row(measure=measure, unit=unit, figures=figures, checks=checks, details={"rounds": values})


MEASURES: dict[str, Callable[[GatewayRun], list[Row]]] = {
    "accept": measure_accept,
    "turns": measure_turns,
    "overhead": measure_overhead,
    "crowd": measure_crowd,
    "start": measure_start,
    "memory": measure_memory,
    "print": measure_print,
}
