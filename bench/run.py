"""One run of the benchmark: its sizes, its stores, and its contenders asked in turn.

Rounds are interleaved: every contender does its part of a round before any begins the next, so that a slow minute of
the machine falls on all of them.
"""

import json
import shutil
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.contenders.contract import GUEST
from bench.driver import Bench, Result, Worker, WorkerError
from bench.environments import OURS
from bench.operations import Timings
from bench.postgres import Databases

LARGE = ("keryx", "raw", "hermes")
"""Who is measured on the large stores: the others have no search, and no list that is meant to be long."""

FILL_MESSAGES = 100
"""How long the sessions are that make a large store large."""
GUEST_EVERY = 50
"""One in so many of them belongs to a second person."""
PART_MESSAGES = 20_000
"""What a small run gives PostgreSQL, which takes a minute to be given 100,000."""
PIECE_MESSAGES = 50_000
"""How many messages are stored between two words about how far it is."""

Figures = dict[str, float | None]
"""One figure by contender."""

Work = Callable[[Worker, int], Result | None]
"""What one worker does in one round, given the round's number."""

Samples = dict[str, list[Result]]
"""By ``contender@store``, the results of its rounds; empty where it offers no such thing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How large the stores are and how long is measured."""

    sessions: dict[str, int]
    """Named sessions by their number of messages: what the ladder store holds, and the large store among others."""
    large_messages: int
    lists: tuple[int, int]
    chats: tuple[int, int]
    appends: int
    long_appends: int
    seconds: float
    """How long one contender may take for one part of a round, where a part can be cut."""
    search_seconds: float
    """The same for one class of queries, of which there are many."""
    whole: str
    """The named session of 10,000 messages, which is read as a whole."""
    thorough: bool
    """Whether that is measured too for which there is no target, and PostgreSQL on the large store."""

    @property
    def ladder_messages(self) -> int:
        """How many messages the ladder store holds."""
        return sum(self.sessions.values())


SIZES = {
    "small": Sizes(
        sessions={"tiny": 100, "middle": 1_000, "long": 10_000},
        large_messages=100_000,
        lists=(1_000, 10_000),
        chats=(10, 1_000),
        appends=1_000,
        long_appends=2_000,
        seconds=2.0,
        search_seconds=0.3,
        whole="long",
        thorough=False,
    ),
    "full": Sizes(
        sessions={"tiny": 100, "middle": 10_000, "long": 100_000},
        large_messages=1_000_000,
        lists=(1_000, 100_000),
        chats=(10, 10_000),
        appends=2_000,
        long_appends=10_000,
        seconds=10.0,
        search_seconds=3.0,
        whole="middle",
        thorough=True,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Everything a measure needs."""

    bench: Bench
    stores: Path
    sizes: Sizes
    rounds: int
    contenders: tuple[str, ...]
    queries: dict[str, list[str]]
    databases: Databases
    keep: bool
    notes: list[str] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    """By contender, what was measured and how its writes are made durable."""

    def among(self, *wanted: str) -> list[str]:
        """Return those of *wanted* that take part, Keryx first."""
        return [contender for contender in self.contenders if contender in wanted]

    @property
    def peers(self) -> list[str]:
        """Return the contenders that are neither Keryx nor the raw limit."""
        return [contender for contender in self.contenders if contender not in OURS]

    def root(self, place: str) -> Path:
        """Return the folder of ``contender@store``, filling the store if this run has not yet."""
        contender, _, store = place.partition("@")
        folder = self.stores / store / contender
        if not (self.stores / store / f"{contender}.json").exists():
            self._build(contender, store, folder)
        elif contender == "postgres":
            self.databases.provide(folder)
        return folder

    def built(self, place: str) -> Result:
        """Return what filling the store of ``contender@store`` took and made."""
        self.root(place)
        contender, _, store = place.partition("@")
        made: Result = json.loads((self.stores / store / f"{contender}.json").read_text(encoding="utf-8"))
        return made

    def meet(self, worker: Worker, opened: Result) -> None:
        """Note what a contender says of itself when its store is opened."""
        self.facts[worker.contender] = f"{opened['version']}; {opened['durable']}"

    @contextmanager
    def field(self, places: Sequence[str]) -> Iterator["Field"]:
        """Run a worker for every ``contender@store`` of *places*, its store open."""
        workers: dict[str, Worker] = {}
        try:
            for place in places:
                root = self.root(place)
                workers[place] = Worker(place, self.bench)
                self.meet(workers[place], workers[place].ask("open", root=str(root)) or {})
            field = Field(workers=workers, rounds=self.rounds, notes=self.notes)
            yield field
            for worker in field.workers.values():
                worker.ask("close")
        finally:
            for worker in workers.values():
                worker.stop()

    def _build(self, contender: str, store: str, folder: Path) -> None:
        if contender == "raw":
            # The same rows in the same file: what differs is only who runs the statements.
            shutil.copytree(self.root(f"keryx@{store}"), folder)
            made: Result = dict(self.built(f"keryx@{store}"))
        else:
            folder.mkdir(parents=True)
            if contender == "postgres":
                self.databases.provide(folder)
            worker = Worker(f"{contender}@{store}", self.bench)
            try:
                worker.ask("open", root=str(folder))
                made = self._fill(worker, store)
                worker.ask("close")
            finally:
                worker.stop()
            made["bytes"] = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            if contender == "postgres" and self.keep:
                self.databases.dump(folder)
        (self.stores / store / f"{contender}.json").write_text(json.dumps(made), encoding="utf-8")

    def _fill(self, worker: Worker, store: str) -> Result:
        kind, _, count = store.partition("-")
        match kind:
            case "empty":
                worker.ask("create", sessions=["fresh"])
                return {"messages": 0}
            case "chats":
                _say(f"filling {store} for {worker.contender}")
                return worker.ask("populate_chats", count=int(count)) or {}
            case "list":
                return _fill_sessions(worker, [(f"fill{number:06d}", 2) for number in range(int(count))])
            case "ladder":
                return _fill_sessions(worker, list(self.sizes.sessions.items()))
            case "large":
                return _fill_sessions(worker, _large_sessions(self.sizes.sessions, self.sizes.large_messages))
            case "part":
                named = {name: self.sizes.sessions[name] for name in ("tiny", "middle")}
                return _fill_sessions(worker, _large_sessions(named, PART_MESSAGES))
            case _:
                raise ValueError(f"there is no recipe for a store named {store}")


def _large_sessions(named: Mapping[str, int], messages: int) -> list[tuple[str, int]]:
    """The named sessions, and then as many others as make so many messages."""
    others = (messages - sum(named.values())) // FILL_MESSAGES
    names = (f"{'fill' if (number + 1) % GUEST_EVERY else GUEST}{number:06d}" for number in range(others))
    return [*named.items(), *((name, FILL_MESSAGES) for name in names)]


def _fill_sessions(worker: Worker, sessions: Sequence[tuple[str, int]]) -> Result:
    """Fill a store a good piece at a time, and tell how far it is."""
    total = sum(size for _, size in sessions)
    done, seconds = 0, 0.0
    for piece in _pieces(sessions):
        filled = worker.ask("fill", sessions=piece, start=done) or {}
        done += filled["messages"]
        seconds += filled["seconds"]
        left = seconds / done * (total - done)
        _say(
            f"filling {worker.store} for {worker.contender}: {done:,} of {total:,} messages in {seconds:.0f} s"
            + (f", about {left:.0f} s to go" if done < total else "")
        )
    settled = worker.ask("settle") or {}
    return {"messages": total, "filling_seconds": seconds, "settling_seconds": settled["seconds"]}


def _pieces(sessions: Sequence[tuple[str, int]]) -> Iterator[list[tuple[str, int]]]:
    piece: list[tuple[str, int]] = []
    held = 0
    for session, size in sessions:
        piece.append((session, size))
        held += size
        if held >= PIECE_MESSAGES:
            yield piece
            piece, held = [], 0
    if piece:
        yield piece


def _say(what: str) -> None:
    print(f"bench: {what}", file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Contenders with their stores open."""

    workers: dict[str, Worker]
    rounds: int
    notes: list[str]

    def ask(self, operation: str, **arguments: object) -> Samples:
        """Ask everybody the same thing in every round."""
        return self.play(lambda worker, _: worker.ask(operation, **arguments))

    def play(self, work: Work) -> Samples:
        """Let everybody do *work* in every round; whoever fails is noted and takes no further part."""
        samples: Samples = {place: [] for place in self.workers}
        for number in range(self.rounds):
            for place, results in self._turn(work, number).items():
                samples[place].append(results)
        self._note_errors(samples)
        return samples

    def append(self, sessions: Mapping[str, str], *, count: int, slices: int, seconds: float) -> Samples:
        """Let everybody append *count* messages in every round, in turns of a slice each; *sessions* is by store.

        The disk of a shared machine is slow for seconds at a time; turns this short let it be slow for all. A slice
        must stay long enough for an index that is kept in the background to get in the way, as it does in life.
        """
        samples: Samples = {place: [] for place in self.workers}
        each = count // slices

        def work(worker: Worker, number: int) -> Result | None:
            session = sessions[worker.store]
            return worker.ask(
                "append", session=session, start=number * each, count=each, seconds=seconds / slices
            )

        for number in range(self.rounds):
            parts: Samples = {}
            for piece in range(slices):
                for place, result in self._turn(work, number * slices + piece).items():
                    parts.setdefault(place, []).append(result)
            for place, results in parts.items():
                samples[place].append(pooled(results))
        self._note_errors(samples)
        return samples

    def _turn(self, work: Work, number: int) -> dict[str, Result]:
        results: dict[str, Result] = {}
        # Whoever comes after a heavy writer finds the disk busy, so that is not always the same one.
        order = list(self.workers.items())
        first = number % len(order) if order else 0
        for place, worker in order[first:] + order[:first]:
            try:
                result = work(worker, number)
            except WorkerError as error:
                self.notes.append(str(error))
                self.workers.pop(place).stop()
                continue
            if result is not None:
                results[place] = result
        return results

    def _note_errors(self, samples: Samples) -> None:
        for place, results in samples.items():
            failed = sum(result.get("errors", 0) for result in results)
            if failed:
                first = next(result["first_error"] for result in results if result.get("first_error"))
                self.notes.append(f"{place}: {failed} calls failed, the first with {first}")


def pooled(parts: Sequence[Result]) -> Result:
    """Return the summary of several appending results as if they were one; written bytes are per append."""
    together = Timings(
        seconds=[second for part in parts for second in part["samples"]],
        errors=sum(part["errors"] for part in parts),
        first_error=next((part["first_error"] for part in parts if part["first_error"]), None),
    )
    count = max(1, len(together.seconds))
    written = {key: sum(part["written"][key] for part in parts) / count for key in ("calls", "disk")}
    syncs = [part["disk_sync"] for part in parts]
    return together.summary() | {"written": written, "disk_sync": statistics.median(syncs)}


def median(samples: Samples, place: str, figure: str) -> float | None:
    """Return the median over the rounds of one figure, or None where there is none."""
    values = [result[figure] for result in samples.get(place, []) if figure in result]
    return statistics.median(values) if values else None


def figures_of(samples: Samples, figure: str) -> Figures:
    """Return the medians of one figure by contender, where each contender had one store."""
    return {place.partition("@")[0]: median(samples, place, figure) for place in samples}
