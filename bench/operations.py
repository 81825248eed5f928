"""What a worker does on request: fill a store, then time one thing on it.

Results are plain JSON values with times in seconds. A failing call of a contender is a result, not an end: it is
counted and its first message kept.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from bench.contenders.contract import Contender, Message, NotOffered, Order
from bench.corpus import read_messages
from bench.disk import wait_for_calm

Result = dict[str, Any]
T = TypeVar("T")

BATCH_MESSAGES = 5_000
"""How many messages a contender is given at once when a store is filled."""
FIRST_TIMESTAMP = 1_735_689_600
"""When the first message of every filled store was sent: the first of January 2025."""
MESSAGE_SECONDS = 20
"""What lies between it and the next; a million of them are past before what is appended now."""
FILLED_ONLY = "before:2025-12-01"
"""As part of a query: nothing that was appended to the store since it was filled."""


@dataclass(slots=True)
class Timings:
    """Durations of one kind of call, with what went wrong."""

    seconds: list[float] = field(default_factory=list)
    errors: int = 0
    first_error: str | None = None

    async def time(self, call: Awaitable[T]) -> T | None:
        """Await *call*, note how long it took, and return its result, or None if it failed."""
        result: T | None = None
        began = time.perf_counter()
        try:
            result = await call
        except NotOffered:
            raise
        except Exception as error:  # noqa: BLE001 - a peer may raise anything, and that is a finding
            self.errors += 1
            self.first_error = self.first_error or f"{type(error).__name__}: {error}"
        # A failed call took its time too: a peer that waits for a lock and gives up was waited for.
        self.seconds.append(time.perf_counter() - began)
        return result

    def summary(self) -> Result:
        """Return count, mean, median, 99th percentile and worst."""
        ordered = sorted(self.seconds)
        count = len(ordered)
        if count == 0:
            return {"count": 0, "errors": self.errors, "first_error": self.first_error}
        return {
            "count": count,
            "mean": sum(ordered) / count,
            "p50": ordered[count // 2],
            "p99": ordered[min(count - 1, int(count * 0.99))],
            "worst": ordered[-1],
            "errors": self.errors,
            "first_error": self.first_error,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations:
    """The requests a worker answers; each public method is one, its parameters are the request's."""

    contender: Contender
    corpus: Path

    async def open(self, *, root: str) -> Result:
        """Open the store; say how long it took."""
        began = time.perf_counter()
        await self.contender.open(Path(root))
        return {"seconds": time.perf_counter() - began, **self.contender.facts()}

    async def close(self) -> Result:
        """Close the store."""
        await self.contender.close()
        return {}

    async def fill(self, *, sessions: list[tuple[str, int]], start: int) -> Result:
        """Make sessions with so many messages each, from position *start* of the corpus on."""
        total = sum(size for _, size in sessions)
        messages = read_messages(self.corpus, start=start, count=total)
        began = time.perf_counter()
        for batch in _batches(sessions, _stamped(messages, first=start)):
            await self.contender.populate(batch)
        return {"messages": total, "seconds": time.perf_counter() - began}

    async def settle(self) -> Result:
        """Bring what filling left undone to an end."""
        began = time.perf_counter()
        await self.contender.settle()
        return {"seconds": time.perf_counter() - began}

    async def create(self, *, sessions: list[str]) -> Result:
        """Make empty sessions."""
        for session in sessions:
            await self.contender.create(session)
        return {}

    async def append(self, *, session: str, start: int, count: int, seconds: float) -> Result:
        """Append one by one, at most *count* messages or for *seconds*; return every time, and what was written."""
        messages = list(read_messages(self.corpus, start=start, count=count))
        sync = wait_for_calm(self.corpus.parent)
        written = _written_bytes()
        timings = await self._append_each(session, messages, seconds)
        # The index is part of what an append costs the disk, also where it is written later.
        await self.contender.catch_up()
        wrote = {key: after - written[key] for key, after in _written_bytes().items()}
        return {
            "samples": timings.seconds,
            "errors": timings.errors,
            "first_error": timings.first_error,
            "written": wrote,
            "disk_sync": sync,
        }

    async def append_concurrently(self, *, appenders: int, start: int, count: int, seconds: float) -> Result:
        """Append *count* messages each from many appenders, a session each; say how many a second were stored."""
        names = [f"appender{number:03d}-{start}" for number in range(appenders)]
        await self.create(sessions=names)
        work = [
            list(read_messages(self.corpus, start=start + number * count, count=count))
            for number in range(appenders)
        ]
        wait_for_calm(self.corpus.parent)
        began = time.perf_counter()
        if self.contender.appenders == "tasks":
            done = await asyncio.gather(
                *(self._append_each(*each, seconds) for each in zip(names, work, strict=True))
            )
        else:
            done = await asyncio.to_thread(self._append_in_threads, names, work, seconds)
        elapsed = time.perf_counter() - began
        everything = Timings(
            seconds=[second for timings in done for second in timings.seconds],
            errors=sum(timings.errors for timings in done),
            first_error=next((timings.first_error for timings in done if timings.first_error), None),
        )
        stored = len(everything.seconds) - everything.errors
        return everything.summary() | {"per_second": stored / elapsed}

    async def find_again(self, *, session: str, word: str) -> Result:
        """Append a message with a word nobody used, search for it at once, and say whether it came."""
        await self.contender.append(session, {"role": "user", "content": f"The word is {word}."})
        found = await self.contender.search(word, order="newest", session=None, guest=False)
        return {"found": found > 0}

    async def load_last(self, *, session: str, count: int, repeats: int) -> Result:
        """Read the newest messages of a session, again and again."""
        return await _repeat(lambda: self.contender.load_last(session, count), repeats, expected=count)

    async def load_all(self, *, session: str, repeats: int) -> Result:
        """Read a whole session, again and again."""
        return await _repeat(lambda: self.contender.load_all(session), repeats)

    async def load_conversation(self, *, session: str, repeats: int) -> Result:
        """Read a whole session for a model, again and again."""
        return await _repeat(lambda: self.contender.load_conversation(session), repeats)

    async def list_newest(self, *, count: int, repeats: int) -> Result:
        """List sessions, again and again."""
        return await _repeat(lambda: self.contender.list_newest(count), repeats, expected=count)

    async def search(
        self, *, queries: list[str], order: Order, session: str | None, guest: bool, seconds: float
    ) -> Result:
        """Run each query three times, at most for *seconds*; say also how many hits they had together."""
        timings = Timings()
        hits = 0
        until = time.perf_counter() + seconds
        for query in queries:
            found: int | None = None
            for _ in range(3):
                asked = self.contender.search(query, order=order, session=session, guest=guest)
                found = await timings.time(asked)
            hits += found or 0
            if time.perf_counter() > until:
                break
        return timings.summary() | {"hits": hits}

    async def find(self, *, queries: list[str], order: Order, session: str | None, guest: bool) -> Result:
        """Say by query what is found in the store as it was filled: session and number of each message."""
        return {
            query: await self.contender.find(
                f"{query} {FILLED_ONLY}", order=order, session=session, guest=guest
            )
            for query in queries
        }

    async def search_for(self, *, queries: list[str], seconds: float) -> Result:
        """Search without a pause for *seconds*."""
        timings = Timings()
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            for query in queries:
                await timings.time(self.contender.search(query, order="newest", session=None, guest=False))
        return timings.summary()

    async def populate_chats(self, *, count: int) -> Result:
        """Make chats that have spoken before."""
        await self.contender.populate_chats(count)
        return {}

    async def route(self, *, chats: int, count: int, seconds: float) -> Result:
        """Route *count* messages from ever other chats, at most for *seconds*."""
        timings = Timings()
        until = time.perf_counter() + seconds
        for number in range(count):
            await timings.time(self.contender.route(number * 7919 % chats))
            if time.perf_counter() > until:
                break
        return timings.summary()

    async def memory(self) -> Result:
        """Say how many bytes of memory this process holds."""
        return {"bytes": int(_proc("status")["VmRSS"].split()[0]) * 1024}

    async def _append_each(self, session: str, messages: Sequence[Message], seconds: float) -> Timings:
        timings = Timings()
        until = time.perf_counter() + seconds
        for message in messages:
            await timings.time(self.contender.append(session, message))
            if time.perf_counter() > until:
                break
        return timings

    def _append_in_threads(
        self, names: list[str], work: list[list[Message]], seconds: float
    ) -> list[Timings]:
        def one(session: str, messages: list[Message]) -> Timings:
            return asyncio.run(self._append_each(session, messages, seconds))

        with ThreadPoolExecutor(len(names)) as pool:
            return list(pool.map(one, names, work))


async def _repeat(call: Callable[[], Awaitable[int]], repeats: int, *, expected: int | None = None) -> Result:
    """Time a reading call after one untimed call; an answer of another length than *expected* is an error."""
    first = await call()
    if expected is not None and first != expected:
        raise ValueError(f"expected {expected} rows and got {first}")
    timings = Timings()
    for _ in range(repeats):
        await timings.time(call())
    return timings.summary() | {"rows": first}


def _stamped(messages: Iterable[Message], *, first: int) -> Iterable[Message]:
    for number, message in enumerate(messages, first):
        yield message | {"timestamp": FIRST_TIMESTAMP + number * MESSAGE_SECONDS}


def _batches(
    sizes: Iterable[tuple[str, int]], messages: Iterable[Message]
) -> Iterable[dict[str, list[Message]]]:
    """Group sessions into batches of about BATCH_MESSAGES messages; a long session is a batch of its own."""
    source = iter(messages)
    batch: dict[str, list[Message]] = {}
    held = 0
    for session, size in sizes:
        batch[session] = list(islice(source, size))
        held += size
        if held >= BATCH_MESSAGES:
            yield batch
            batch, held = {}, 0
    if batch:
        yield batch


def _written_bytes() -> dict[str, int]:
    """Bytes this process and its children gave to ``write`` calls, and bytes they made the kernel send to the disk."""
    # A child that has ended is in its parent's counters; one that is alive is not.
    children = (
        thread.read_text(encoding="ascii").split() for thread in Path("/proc/self/task").glob("*/children")
    )
    counters = [_proc("io"), *(_proc("io", of=child) for some in children for child in some)]
    return {
        "calls": sum(int(each["wchar"]) for each in counters),
        "disk": sum(int(each["write_bytes"]) for each in counters),
    }


def _proc(name: str, *, of: str = "self") -> dict[str, str]:
    lines = Path("/proc", of, name).read_text(encoding="ascii").splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}
