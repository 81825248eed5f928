"""What is measured of a model's turns, as rows with the targets of the issue that asked for it."""

import asyncio
import resource
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from bench.gateway import serving
from bench.gateway.load import Place
from bench.gateway.stores import Stores
from bench.model.provider import variables
from bench.model.talking import PATIENCE_SECONDS, Sample, talking
from bench.report import Check, Row, Unit, below

T = TypeVar("T")

FIRST_TOKEN = 0.020
PER_TOKEN = 0.0002
STOP_SECONDS = 1.0
IDLE_BYTES = 140e6
READY_SECONDS = 1.0
PRINT_SECONDS = 2.0
CHATS = 4
WAYS = {"slow": "while tokens come slowly", "hang": "before the first token", "call": "while a tool runs"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is measured."""

    questions: int
    """For the first token."""
    answers: int
    """For the tokens after it."""
    tokens: int
    stops: int
    starts: int


SIZES = {
    "quick": Sizes(questions=20, answers=5, tokens=500, stops=2, starts=3),
    "full": Sizes(questions=100, answers=15, tokens=1_000, stops=10, starts=9),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRun:
    """Everything a measure needs."""

    stores: Stores
    url: str
    """Of the scripted provider."""
    sizes: Sizes
    notes: list[str] = field(default_factory=list)


def measure_tokens(run: ModelRun) -> list[Row]:
    """When tokens are handed on, through Keryx and by the provider's bare client."""
    sizes = run.sizes
    short, long = _with_place(run, lambda place: asyncio.run(_compare(place, run.url, sizes)))
    first = {"bare": [each.bare.first for each in short], "keryx": [each.keryx.first for each in short]}
    each_token = {
        "bare": [each.bare.per_token for each in long],
        "keryx": [each.keryx.per_token for each in long],
    }
    before = statistics.median(each.before_agent for each in short)
    run.notes.append(
        f"of the time to the first token, {before * 1e3:.1f} ms are from the platform to the agent (p50)"
    )
    cpu = [
        statistics.median(part) * 1e6
        for part in ([each.bare.cpu_per_token for each in long], [each.keryx.cpu_per_token for each in long])
    ]
    run.notes.append(
        f"processor time for a token: {cpu[0]:.0f} µs of the bare client, {cpu[1]:.0f} µs with Keryx"
    )
    added = [each.keryx.first - each.bare.first for each in short]
    more = [each.keryx.per_token - each.bare.per_token for each in long]
    return [
        _row(
            "to the first token, p50",
            "seconds",
            first,
            below(FIRST_TOKEN, "seconds", statistics.median(added)),
        ),
        _row(
            "for each further token",
            "seconds",
            each_token,
            below(PER_TOKEN, "seconds", statistics.median(more)),
        ),
    ]


async def _compare(place: Place, url: str, sizes: Sizes) -> tuple[list[Sample], list[Sample]]:
    async with talking(place, url) as talk, asyncio.timeout(PATIENCE_SECONDS * 10):
        for number in range(CHATS):
            await talk.compare("words 1", chat=str(number))
        short = [await talk.compare("words 5", chat=str(number % CHATS)) for number in range(sizes.questions)]
        # Each in a chat of its own: a long answer would be part of the next question.
        long = [
            await talk.compare(f"words {sizes.tokens}", chat=f"long-{number}")
            for number in range(sizes.answers)
        ]
    return short, long


def measure_stop(run: ModelRun) -> list[Row]:
    """From an accepted ``/stop`` to the end of the turn; the worst counts."""
    seconds = _with_place(run, lambda place: asyncio.run(_stop(place, run.url, run.sizes.stops)))
    return [
        _row(f"/stop {WAYS[way]}, p50", "seconds", {"keryx": each}, below(STOP_SECONDS, "seconds", max(each)))
        for way, each in seconds.items()
    ]


async def _stop(place: Place, url: str, stops: int) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    async with talking(place, url) as talk, asyncio.timeout(PATIENCE_SECONDS * 10):
        await talk.compare("words 1", chat="warm")
        for number in range(stops):
            for way, some in seconds.items():
                some.append(await talk.stop(way, chat=f"{way}-{number}"))
    return seconds


def measure_start(run: ModelRun) -> list[Row]:
    """``keryx serve`` with a provider, to its ready line and its open port; the first start warms the files."""

    def start(place: Place) -> list[float]:
        seconds = []
        for _ in range(run.sizes.starts + 1):
            with serving.serve(place, **variables(run.url)) as served:
                seconds.append(served.seconds)
        return seconds[1:]

    seconds = _with_place(run, start)
    return [
        _row(
            "serve to ready",
            "seconds",
            {"keryx": seconds},
            below(READY_SECONDS, "seconds", statistics.median(seconds)),
        )
    ]


def measure_memory(run: ModelRun) -> list[Row]:
    """What ``keryx serve`` holds when it has nothing to do, after its provider has answered once."""
    held = _with_place(run, lambda place: asyncio.run(_memory(place, run.url)))
    run.notes.append(f"PSS of serve with a provider: {held.pss / 1e6:.0f} MB")
    return [
        _row("serve, idle: RSS", "bytes", {"keryx": [held.rss]}, below(IDLE_BYTES, "bytes", held.rss)),
    ]


async def _memory(place: Place, url: str) -> serving.Memory:
    await serving.let_programs_in(place)
    callback = serving.Callback()
    address = await callback.open()
    try:
        with serving.serve(place, callback=address, **variables(url)) as served:
            await serving.speak(served.url, chats=1)
            await callback.until(1)
            return await serving.idle_memory(served.pid)
    finally:
        await callback.close()


def measure_print(run: ModelRun) -> list[Row]:
    """``keryx --print hello`` with a model and with the guide, in turn, after one of each that warms the files."""

    def ask(place: Place) -> tuple[list[_Printed], list[_Printed]]:
        pairs = [(_print(place, {}), _print(place, variables(run.url))) for _ in range(run.sizes.starts + 1)][
            1:
        ]
        return [guide for guide, _ in pairs], [model for _, model in pairs]

    by_guide, by_model = _with_place(run, ask)
    guide, model = [each.seconds for each in by_guide], [each.seconds for each in by_model]
    added = statistics.median(model) - statistics.median(guide)
    cpu = [statistics.median(each.cpu for each in some) for some in (by_guide, by_model)]
    run.notes.append(f"processor time of --print: {cpu[0]:.2f} s with the guide, {cpu[1]:.2f} s with a model")
    return [
        _row("keryx --print hello with the guide", "seconds", {"keryx": guide}),
        _row("… with a model; added", "seconds", {"keryx": model}, below(PRINT_SECONDS, "seconds", added)),
    ]


class _Printed(NamedTuple):
    seconds: float
    cpu: float
    """Of the processor: what is left on a busy machine."""


def _print(place: Place, settings: dict[str, str]) -> _Printed:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = serving.print_hello(place, **settings)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return _Printed(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _with_place(run: ModelRun, work: Callable[[Place], T]) -> T:
    """Do something on a new, empty store."""
    place = run.stores.make("sqlite")
    try:
        return work(place)
    finally:
        run.stores.drop(place)


def _row(measure: str, unit: Unit, values: dict[str, list[float]], *checks: Check) -> Row:
    """Return a row of medians, with every value in the details."""
    figures: dict[str, float | None] = {name: statistics.median(each) for name, each in values.items()}
    return Row(measure=measure, unit=unit, figures=figures, checks=checks, details={"values": values})


MEASURES: dict[str, Callable[[ModelRun], list[Row]]] = {
    "tokens": measure_tokens,
    "stop": measure_stop,
    "start": measure_start,
    "memory": measure_memory,
    "print": measure_print,
}
