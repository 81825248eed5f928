"""What writing costs: one client, many appenders, many processes, and routing.

Times include everything a caller waits for; bytes written include what the index writes later.
"""

import statistics

from bench.driver import Result, Worker
from bench.report import Row, at_least, at_most, below
from bench.run import LARGE, Figures, Run, Samples, figures_of, median, pooled


def measure_append(run: Run) -> list[Row]:
    """One client appending: to sessions of growing length, then to a long session in a large store."""
    rows: list[Row] = []
    with run.field([f"{contender}@ladder" for contender in run.contenders]) as field:
        found = field.play(
            lambda worker, number: worker.ask("find_again", session="tiny", word=f"nadir{number}quoin")
        )
        run.notes.extend(
            f"{place}: an appended message was not found by the next search"
            for place, results in found.items()
            if not all(result["found"] for result in results)
        )
        lengths = run.sizes.sessions if run.sizes.thorough else {"tiny": run.sizes.sessions["tiny"]}
        for session, length in lengths.items():
            count = run.sizes.appends
            samples = field.append(
                {"ladder": session}, count=count, slices=count // 500, seconds=run.sizes.seconds
            )
            rows += _append_rows(f"{length:,}", samples, judged=session == "tiny")
    return rows + _long_append_rows(run)


def _append_rows(length: str, samples: Samples, *, judged: bool) -> list[Row]:
    p50, p99, mean = (figures_of(samples, figure) for figure in ("p50", "p99", "mean"))
    ours, hermes = p50["keryx"], p50.get("hermes")
    name = f"append at {length} messages"
    if not judged:
        return [Row(measure=f"{name}, p50", unit="seconds", figures=p50)]
    written = _written(samples)
    p50_checks = (at_most(2, "raw", ours, p50["raw"]), at_most(0.8, "Hermes", ours, hermes))
    p99_checks = (at_most(1 / 3, "Hermes", p99["keryx"], p99.get("hermes")),)
    return [
        Row(measure=f"{name}, p50", unit="seconds", figures=p50, checks=p50_checks),
        Row(measure=f"{name}, p99", unit="seconds", figures=p99, checks=p99_checks),
        Row(measure=f"{name}, mean", unit="seconds", figures=mean),
        Row(
            measure="written per append, index included",
            unit="bytes",
            figures=written,
            checks=(below(40_000, "bytes", written["keryx"]),),
            details={place: [result["written"] for result in results] for place, results in samples.items()},
        ),
    ]


def _long_append_rows(run: Run) -> list[Row]:
    sizes = run.sizes
    count = sizes.long_appends
    large = [f"{contender}@large" for contender in run.among(*LARGE)]
    with run.field([*large, "keryx@empty", "raw@empty"]) as field:
        # A peer's stalls are what is looked for here, so nobody's time is cut.
        samples = field.append(
            {"large": "long", "empty": "fresh"},
            count=count,
            slices=count // 1_000,
            seconds=3_600 * 1_000,
        )
    at_large = {place: samples[place] for place in large if place in samples}
    p50, mean, worst = (figures_of(at_large, figure) for figure in ("p50", "mean", "worst"))
    before = {contender: median(samples, f"{contender}@empty", "p50") for contender in ("keryx", "raw")}
    name = f"append at {sizes.sessions['long']:,} in a store of {sizes.large_messages:,}"
    excess = [
        ours["worst"] / max(0.05, 2 * raw["worst"])
        for ours, raw in zip(samples["keryx@large"], samples["raw@large"], strict=False)
    ]
    worst_check = at_most(1, "max(50 ms, 2 × raw's worst)", statistics.median(excess) if excess else None, 1)
    return [
        Row(measure="append to an empty store, p50", unit="seconds", figures={**before}),
        Row(
            measure=f"{name}, p50",
            unit="seconds",
            figures=p50,
            checks=(at_most(1.15, "empty", p50["keryx"], before["keryx"]),),
        ),
        Row(
            measure=f"{name}, mean of {count:,}",
            unit="seconds",
            figures=mean,
            checks=(at_most(1 / 3, "Hermes", mean["keryx"], mean.get("hermes")),),
        ),
        Row(measure=f"{name}, worst of {count:,}", unit="seconds", figures=worst, checks=(worst_check,)),
    ]


def measure_concurrent(run: Run) -> list[Row]:
    """Thirty-two appenders in one process, a session each."""
    each = run.sizes.appends // 10

    def work(worker: Worker, number: int) -> Result | None:
        arguments = {"start": number * 32 * each, "count": each, "seconds": run.sizes.seconds * 2}
        return worker.ask("append_concurrently", appenders=32, **arguments)

    contenders = [contender for contender in run.contenders if contender != "raw"]
    with run.field([f"{contender}@ladder" for contender in contenders]) as field:
        samples = field.play(work)
    rates = figures_of(samples, "per_second")
    others = [rate for contender, rate in rates.items() if contender not in ("keryx", "hermes") and rate]
    checks = (
        at_least(8, "Hermes", rates["keryx"], rates.get("hermes")),
        at_least(4, "the best other", rates["keryx"], max(others, default=None)),
    )
    return [Row(measure="32 concurrent appenders", unit="per second", figures=rates, checks=checks)]


def measure_processes(run: Run) -> list[Row]:
    """Four processes appending to one large store while a fifth searches it."""
    seconds = max(3.0, run.sizes.seconds)
    worst: Figures = {}
    errors: Figures = {}
    for number in range(run.rounds):
        for contender in run.among("keryx", "hermes"):
            results = _crowd(run, f"{contender}@large", number, seconds)
            # No median here: the promise is about the worst that happens.
            worst[contender] = max(worst.get(contender) or 0, *(result["worst"] for result in results))
            errors[contender] = sum((result["errors"] for result in results), errors.get(contender) or 0)
            failures = [result["first_error"] for result in results if result["first_error"]]
            run.notes.extend(f"{contender}, 4 processes: {failure}" for failure in failures[:1])
    name = "4 processes append, one searches"
    return [
        Row(
            measure=f"{name}: longest wait",
            unit="seconds",
            figures=worst,
            checks=(below(1.0, "seconds", worst["keryx"]),),
        ),
        Row(
            measure=f"{name}: errors",
            unit="count",
            figures=errors,
            checks=(below(0, "count", errors["keryx"]),),
        ),
    ]


def _crowd(run: Run, place: str, round_number: int, seconds: float) -> list[Result]:
    root = run.root(place)
    workers = [Worker(place, run.bench) for _ in range(5)]
    try:
        for number, worker in enumerate(workers):
            worker.ask("open", root=str(root))
            if number < 4:
                worker.ask("create", sessions=[f"crowd{round_number}-{number}"])
        for number, worker in enumerate(workers[:4]):
            arguments = {"start": number * 1_000, "count": 100_000, "seconds": seconds}
            worker.send("append", session=f"crowd{round_number}-{number}", **arguments)
        workers[4].send("search_for", queries=run.queries["rare"] + run.queries["common"], seconds=seconds)
        *appended, searched = [worker.receive() or {} for worker in workers]
        for worker in workers:
            worker.ask("close")
        return [*(pooled([result]) for result in appended), searched]
    finally:
        for worker in workers:
            worker.stop()


def measure_routing(run: Run) -> list[Row]:
    """One inbound message finding its session, among few chats and among many."""
    few, many = run.sizes.chats
    contenders = run.among("keryx", "hermes")

    def work(worker: Worker, _: int) -> Result | None:
        chats = int(worker.store.removeprefix("chats-"))
        return worker.ask("route", chats=chats, count=run.sizes.appends, seconds=run.sizes.seconds)

    with run.field(
        [f"{contender}@chats-{count}" for contender in contenders for count in (few, many)]
    ) as field:
        samples = field.play(work)
    figures = {
        count: {contender: median(samples, f"{contender}@chats-{count}", "p50") for contender in contenders}
        for count in (few, many)
    }
    check = at_most(1.2, f"{few} chats", figures[many]["keryx"], figures[few]["keryx"])
    return [
        Row(measure=f"route a message, {few} chats", unit="seconds", figures={**figures[few]}),
        Row(
            measure=f"route a message, {many:,} chats",
            unit="seconds",
            figures={**figures[many]},
            checks=(check,),
        ),
    ]


def _written(samples: Samples) -> Figures:
    """The larger of what was handed to ``write`` and what went to the disk, per append."""
    return {
        place.partition("@")[0]: statistics.median(max(result["written"].values()) for result in results)
        for place, results in samples.items()
        if results
    }
