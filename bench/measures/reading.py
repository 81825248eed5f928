"""What reading costs: opening, loading, listing; and what the store takes on the disk.

These run before the measures that write, on the stores as they were filled.
"""

import statistics

from bench.driver import Worker
from bench.report import Row, at_most
from bench.run import LARGE, Figures, Run, figures_of, median


def measure_open(run: Run) -> list[Row]:
    """Opening an empty and a large store, in a new process each time."""
    opened: dict[str, list[float]] = {}
    contenders = run.among("keryx", "hermes")
    for _ in range(run.rounds):
        for store in ("empty", "large"):
            for contender in contenders:
                root = run.root(f"{contender}@{store}")
                worker = Worker(f"{contender}@{store}", run.bench)
                answer = worker.ask("open", root=str(root)) or {}
                run.meet(worker, answer)
                opened.setdefault(f"{contender}@{store}", []).append(answer["seconds"])
                worker.ask("close")
                worker.stop()
    empty, large = (
        {contender: statistics.median(opened[f"{contender}@{store}"]) for contender in contenders}
        for store in ("empty", "large")
    )
    messages = run.sizes.large_messages
    return [
        Row(measure="open an empty store", unit="seconds", figures={**empty}),
        Row(
            measure=f"open a store of {messages:,} messages",
            unit="seconds",
            figures={**large},
            checks=(at_most(1.5, "empty", large["keryx"], empty["keryx"]),),
        ),
    ]


def measure_size(run: Run) -> list[Row]:
    """Bytes on disk per message, index included, as filled."""
    figures: Figures = {}
    for contender in run.among("keryx", "hermes"):
        made = run.built(f"{contender}@large")
        figures[contender] = made["bytes"] / made["messages"]
    for contender in run.peers:
        if contender not in figures:
            made = run.built(f"{contender}@ladder")
            figures[contender] = made["bytes"] / made["messages"]
    check = at_most(0.4, "Hermes", figures["keryx"], figures.get("hermes"))
    return [Row(measure="bytes on disk per message", unit="bytes", figures=figures, checks=(check,))]


def measure_load(run: Run) -> list[Row]:
    """The end of a long session, and the whole of one of 10,000 messages."""
    session, last_of = run.sizes.whole, run.sizes.sessions["long"]
    with run.field([f"{contender}@ladder" for contender in run.contenders]) as field:
        last = figures_of(field.ask("load_last", session="long", count=50, repeats=50), "p50")
        loaded = field.ask("load_all", session=session, repeats=5)
        given: Figures = {}
        if run.sizes.thorough:
            given = figures_of(field.ask("load_conversation", session=session, repeats=5), "p50")
    whole = figures_of(loaded, "p50")
    # Asked and not assumed: a kept store has grown.
    length = median(loaded, "keryx@ladder", "rows") or 0
    return [
        Row(
            measure=f"last 50 of {last_of:,} messages",
            unit="seconds",
            figures=last,
            checks=(at_most(3, "raw", last["keryx"], last["raw"]),),
        ),
        Row(
            measure=f"whole transcript of {length:,.0f}",
            unit="seconds",
            figures=whole,
            checks=(at_most(0.5, "Hermes", whole["keryx"], whole.get("hermes")),),
        ),
        Row(
            measure=f"the same, as a model is given it ({length:,.0f})",
            unit="seconds",
            figures=given,
        ),
    ]


def measure_list(run: Run) -> list[Row]:
    """The newest 50 of few and of many sessions."""
    few, many = run.sizes.lists
    contenders = [contender for contender in run.contenders if contender != "openai-agents"]
    places = [f"{contender}@list-{few}" for contender in contenders]
    places += [f"{contender}@list-{many}" for contender in run.among(*LARGE)]
    with run.field(places) as field:
        samples = field.ask("list_newest", count=50, repeats=20)
    figures = {
        count: {
            place.partition("@")[0]: median(samples, place, "p50")
            for place in samples
            if place.endswith(f"-{count}")
        }
        for count in (few, many)
    }
    ours, raw, before = figures[many]["keryx"], figures[many]["raw"], figures[few]["keryx"]
    checks = (at_most(3, "raw", ours, raw), at_most(1.3, f"{few:,} sessions", ours, before))
    return [
        Row(measure=f"list 50 of {few:,} sessions", unit="seconds", figures=figures[few]),
        Row(measure=f"list 50 of {many:,} sessions", unit="seconds", figures=figures[many], checks=checks),
    ]
