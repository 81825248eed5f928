"""A gateway under load in this process, as ``keryx serve`` wires it, but for the model and the platform.

What is offered in an open loop is offered at its time, whether Keryx is ready or not, and timed from when it was due:
a slow moment is paid for by everybody who came in it.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.gateway.doubles import PLATFORM, USER, Books, InstantAgent, Service
from keryx.app import finish_start, open_system
from keryx.config_load import load_config
from keryx.core.people.tables import people
from keryx.gateway.gateway import Gateway
from keryx.store.database import Database, Tx
from keryx.store.sqlite import SqliteDatabase

PATIENCE_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a store is; ``folder`` is also the home of whoever works on it."""

    folder: Path
    database: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A gateway at work and its doubles."""

    database: Database
    service: Service
    books: Books


@asynccontextmanager
async def gateway(place: Place, *, turns_max: int = 64) -> AsyncIterator[Running]:
    """Run a gateway on the store there; with ``turns_max`` 0 it only takes in."""
    configuration = load_config(
        {"KERYX_HOME": str(place.folder), "KERYX_DATABASE": place.database}, cwd=place.folder
    )
    books = Books()
    service = Service(books)
    async with open_system(configuration) as system:
        await system.runtime.database.write(let_in)
        running = Gateway(system.runtime, InstantAgent(books), system.toolbox, [service], turns_max=turns_max)
        await running.start()
        await finish_start(system)
        try:
            yield Running(database=system.runtime.database, service=service, books=books)
        finally:
            await running.stop(seconds=1)


def let_in(tx: Tx) -> None:
    """Let the owner speak on the platform of the benchmark."""
    owner = people.ensure_owner(tx)
    tx.run("people.add_identity", platform=PLATFORM, account="", user_id=USER, person_id=owner.id, name=USER)
    people.mark_welcomed(tx, owner.id)


async def accept(place: Place, *, messages: int, chats: int) -> float:
    """Return how many messages a second are stored and acknowledged, when no turn runs."""
    async with gateway(place, turns_max=0) as running, asyncio.timeout(PATIENCE_SECONDS):
        service = running.service
        for chat in range(chats):
            service.say(f"chat-{chat}")
        await service.until(lambda: service.acknowledged == chats)
        began = time.perf_counter()
        for number in range(messages):
            service.say(f"chat-{number % chats}")
        await service.until(lambda: service.acknowledged == chats + messages)
        return messages / (time.perf_counter() - began)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """What came through in a closed loop."""

    turns_per_second: float
    commits_per_turn: float | None
    """On SQLite, where the writes of several turns share one."""
    cpu_per_turn: float
    """Seconds of processor time of all threads, the doubles' included: what is left of it on a busy machine."""


async def converse(place: Place, *, chats: int, seconds: float) -> Rate:
    """Let every chat say its next message as soon as it is answered, for so long."""
    async with gateway(place) as running, asyncio.timeout(PATIENCE_SECONDS + seconds):
        service = running.service
        await warm(service, [f"chat-{chat}" for chat in range(chats)])
        service.on_sent = service.say
        before, commits = service.answered, _count_commits(running.database)
        began, used = time.perf_counter(), time.process_time()
        for chat in range(chats):
            service.say(f"chat-{chat}")
        await asyncio.sleep(seconds)
        turns = service.answered - before
        took, used = time.perf_counter() - began, time.process_time() - used
        shared = None if commits is None else len(commits) / turns
        service.on_sent = lambda _chat: None
        offered = len(running.books.offered)
        await service.until(lambda: service.answered == offered)
        return Rate(turns_per_second=turns / took, commits_per_turn=shared, cpu_per_turn=used / turns)


def _count_commits(database: Database) -> list[None] | None:
    """Return a list that grows with every commit from now on; None where no commit is shared."""
    if not isinstance(database, SqliteDatabase):
        return None
    commits: list[None] = []
    writer = database._writer  # noqa: SLF001 - nobody else tells them from the commits that are only noticed
    woken = writer._on_commit  # noqa: SLF001

    def count() -> Sequence[asyncio.Future[None]]:
        commits.append(None)
        return woken()

    writer._on_commit = count  # noqa: SLF001
    return commits


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """Seconds of every turn on both sides of the agent."""

    before_agent: list[float]
    """From the update to the agent."""
    after_agent: list[float]
    """From the agent's last token to the platform."""

    @property
    def together(self) -> list[float]:
        """What Keryx added to each turn."""
        return [before + after for before, after in zip(self.before_agent, self.after_agent, strict=True)]


async def offer(place: Place, *, chats: Sequence[str], per_second: float, seconds: float) -> Latencies:
    """Offer so many messages a second, at random times that are the same in every run, to ever other chats."""
    times = random.Random(1)
    async with gateway(place) as running, asyncio.timeout(PATIENCE_SECONDS + seconds):
        service = running.service
        await warm(service, chats)
        since = len(running.books.offered)
        began = time.perf_counter()
        due = began
        for number in range(int(per_second * seconds)):
            due += times.expovariate(per_second)
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            service.say(chats[number % len(chats)], at=due)
        offered = len(running.books.offered)
        await service.until(lambda: service.answered == offered)
        books = running.books
        return Latencies(before_agent=books.before_agent(since), after_agent=books.after_agent(since))


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """How long many took that came at once."""

    all_seconds: float
    worst_seconds: float


async def burst(place: Place, *, chats: int) -> Burst:
    """Let so many new chats speak at the same moment."""
    async with gateway(place) as running, asyncio.timeout(PATIENCE_SECONDS):
        service = running.service
        began = time.perf_counter()
        for chat in range(chats):
            service.say(f"chat-{chat}")
        await service.until(lambda: service.answered == chats)
        return Burst(all_seconds=time.perf_counter() - began, worst_seconds=max(running.books.whole()))


async def warm(service: Service, chats: Sequence[str]) -> None:
    """Let every chat be answered once, so that its conversation is there."""
    before = service.answered
    for chat in chats:
        service.say(chat)
    await service.until(lambda: service.answered == before + len(chats))
