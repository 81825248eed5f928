"""What searching costs: every class of query, in everything, in one session, and by somebody who may see little.

Keryx on PostgreSQL is measured beside the others, and every query must find there what it finds on SQLite.
"""

from collections.abc import Iterable, Mapping

from bench.driver import Worker, WorkerError
from bench.report import Row, below
from bench.run import Field, Run, Samples, figures_of, median

EVERYTHING: Mapping[str, object] = {"order": "newest", "session": None, "guest": False}
BEST: Mapping[str, object] = {**EVERYTHING, "order": "best"}
SCOPES = {
    "newest first": EVERYTHING,
    "newest first, in one session": {**EVERYTHING, "session": "middle"},
    "newest first, for one person": {**EVERYTHING, "guest": True},
    "best first": BEST,
}
POSTGRES_SECONDS_MAX = 0.030


def measure_search(run: Run) -> list[Row]:
    """Every class of query over a large store and, where all is wanted, over a middling one."""
    rows: list[Row] = []
    if run.sizes.thorough:
        with run.field([f"{contender}@ladder" for contender in run.among("keryx", "hermes")]) as field:
            for scope, asked in {"newest first": EVERYTHING, "best first": BEST}.items():
                for kind, samples in _ask(run, field, asked).items():
                    name = f"search {run.sizes.ladder_messages:,}, {scope}: {kind}"
                    rows.append(Row(measure=name, unit="seconds", figures=figures_of(samples, "p50")))
    return rows + _search_large(run) + _search_postgres(run)


def _search_large(run: Run) -> list[Row]:
    rows: list[Row] = []
    with run.field([f"{contender}@large" for contender in run.among("keryx", "hermes")]) as field:
        for scope, asked in SCOPES.items():
            for kind, samples in _ask(run, field, asked).items():
                name = f"search {run.sizes.large_messages:,}, {scope}: {kind}"
                rows.append(_row(name, kind, asked, samples))
        memory = figures_of(field.ask("memory"), "bytes")
    return [*rows, Row(measure="memory after these searches", unit="bytes", figures=memory)]


def _search_postgres(run: Run) -> list[Row]:
    if run.databases.missing is not None:
        run.notes.append(f"PostgreSQL was not measured. {run.databases.missing}")
        return []
    store = "large" if run.sizes.thorough else "part"
    ours, theirs = f"keryx@{store}", f"postgres@{store}"
    messages = run.built(ours)["messages"]
    rows: list[Row] = []
    different: list[str] = []
    with run.field((ours, theirs)) as field:
        for scope, asked in SCOPES.items():
            different += _different_answers(run, field.workers.values(), asked)
            for kind, samples in _ask(run, field, asked).items():
                figure = median(samples, theirs, "p50")
                bounds = (below(POSTGRES_SECONDS_MAX, "seconds", figure),)
                rows.append(
                    Row(
                        measure=f"on PostgreSQL {messages:,}, {scope}: {kind}",
                        unit="seconds",
                        figures={"keryx": figure},
                        checks=bounds if asked["order"] == "newest" else (),
                    )
                )
    number = len(different)
    last = Row(
        measure="on PostgreSQL: queries that find something else",
        unit="count",
        figures={"keryx": number},
        checks=(below(0, "count", number),),
        details={"queries": different},
    )
    return [*rows, last]


def _ask(run: Run, field: Field, asked: Mapping[str, object]) -> dict[str, Samples]:
    seconds = run.sizes.search_seconds
    return {
        kind: field.ask("search", queries=queries, seconds=seconds, **asked)
        for kind, queries in run.queries.items()
    }


def _different_answers(run: Run, workers: Iterable[Worker], asked: Mapping[str, object]) -> list[str]:
    """Return the queries to which not everybody finds the same messages in the same order."""
    queries = [query for some in run.queries.values() for query in some]
    first, *others = [worker.ask("find", queries=queries, **asked) or {} for worker in workers]
    if not others or not any(first.values()):
        raise WorkerError("there are no answers of SQLite and PostgreSQL to compare")
    return [query for query in queries if any(other[query] != first[query] for other in others)]


def _row(name: str, kind: str, asked: Mapping[str, object], samples: Samples) -> Row:
    figures = figures_of(samples, "p50")
    bound = 0.003 if asked["order"] == "newest" else 0.05 if kind == "common" else 0.02
    hits = {place: results[0]["hits"] for place, results in samples.items() if results}
    checks = (below(bound, "seconds", figures.get("keryx")),)
    return Row(measure=name, unit="seconds", figures=figures, checks=checks, details={"hits": hits})
