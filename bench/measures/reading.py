"""What reading costs: opening, searching, loading, listing; and what the store takes on the disk.

These run before the measures that write, on the stores as they were filled.
"""

import statistics

from bench.driver import Worker
from bench.report import Row, at_most, below
from bench.run import LARGE, Figures, Run, Samples, figures_of, median


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


def measure_search(run: Run) -> list[Row]:
    """Every class of query over a middling and a large store."""
    rows: list[Row] = []
    for store, messages in (("ladder", run.sizes.ladder_messages), ("large", run.sizes.large_messages)):
        places = [f"{contender}@{store}" for contender in run.among("keryx", "hermes")]
        with run.field(places) as field:
            for order, session in (("newest", None), ("newest", "middle"), ("best", None)):
                if session and store == "ladder":
                    continue
                for kind, queries in run.queries.items():
                    samples = field.ask(
                        "search",
                        queries=queries,
                        order=order,
                        session=session,
                        seconds=run.sizes.search_seconds,
                    )
                    where = " in one session" if session else ""
                    name = f"search {messages:,}, {order} first{where}: {kind}"
                    rows.append(_search_row(name, samples, order, kind, judged=store == "large"))
            if store == "large":
                memory = figures_of(field.ask("memory"), "bytes")
                rows.append(Row(measure="memory after these searches", unit="bytes", figures=memory))
    return rows


def _search_row(name: str, samples: Samples, order: str, kind: str, *, judged: bool) -> Row:
    figures = figures_of(samples, "p50")
    bound = 0.003 if order == "newest" else 0.05 if kind == "common" else 0.02
    hits = {place: results[0]["hits"] for place, results in samples.items() if results}
    checks = (below(bound, "seconds", figures["keryx"]),) if judged else ()
    return Row(measure=name, unit="seconds", figures=figures, checks=checks, details={"hits": hits})


def measure_load(run: Run) -> list[Row]:
    """The end of a long session, and the whole of a middling one."""
    sessions = run.sizes.sessions
    with run.field([f"{contender}@ladder" for contender in run.contenders]) as field:
        last = figures_of(field.ask("load_last", session="long", count=50, repeats=50), "p50")
        whole = figures_of(field.ask("load_all", session="middle", repeats=5), "p50")
        given = figures_of(field.ask("load_conversation", session="middle", repeats=5), "p50")
    return [
        Row(
            measure=f"last 50 of {sessions['long']:,} messages",
            unit="seconds",
            figures=last,
            checks=(at_most(3, "raw", last["keryx"], last["raw"]),),
        ),
        Row(
            measure=f"whole transcript of {sessions['middle']:,}",
            unit="seconds",
            figures=whole,
            checks=(at_most(0.5, "Hermes", whole["keryx"], whole.get("hermes")),),
        ),
        Row(
            measure=f"the same, as a model is given it ({sessions['middle']:,})",
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
