"""Play simulated worlds one after the other: each on an empty store in memory, or all on one real store.

A world leaves no unfinished work, so the next world can use the same store. With a plan that is a pure function of
fault points, a repeated world on an empty store runs exactly the same statements.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from random import Random

from keryx.config import Settings
from keryx.core.deliveries.views.message_fates import list_deliveries, list_fates
from keryx.core.upkeep.views.invariants import check_invariants
from keryx.ids import Ids
from keryx.platforms.adapter import Capabilities
from keryx.store.database import Database
from keryx.testing.platform import FakePlatform
from keryx.testing.simulator.clock import SimulatedClock
from keryx.testing.simulator.fault_plan import FaultPlan
from keryx.testing.simulator.idle import ITEMS_MAX, wait_until_idle
from keryx.testing.simulator.loop import VirtualLoop
from keryx.testing.simulator.memory import MemoryDatabase
from keryx.testing.simulator.records import SentMessage, SimulationRecords, check_records
from keryx.testing.simulator.server import InlinePostgres
from keryx.testing.simulator.world import SETTINGS, World

PLATFORM = Capabilities(text_max=120, edits=True)
Story = Callable[[World], Awaitable[list[SentMessage]]]
"""Plays events in a world and returns the messages that people sent."""


def no_fault(_: object) -> None:
    """Return None: the plan without faults."""


class Simulation:
    """Plays simulated worlds on one store."""

    def __init__(self, address: str | None = None) -> None:
        """Connect to the PostgreSQL at ``address``; without it, every world begins on an empty store in memory."""
        self._world: World | None = None
        self._clock = SimulatedClock()
        self._real: Database = (
            MemoryDatabase(clock=self._clock, hook=self._hook)
            if address is None
            else InlinePostgres.open(address, clock=self._clock, hook=self._hook)
        )
        self._played = 0
        self._ended_before = 0

    def play(
        self,
        story: Story,
        *,
        seed: int = 0,
        plan: FaultPlan = no_fault,
        capabilities: Capabilities = PLATFORM,
        settings: Settings = SETTINGS,
    ) -> World:
        """Play a story to its end, and return its world with all breaches."""
        if isinstance(self._real, MemoryDatabase):
            self._real.empty()
            self._clock.restart()
            self._played = self._ended_before = 0
        self._played += 1
        loop = VirtualLoop()
        loop.set_exception_handler(lambda _loop, _context: None)
        self._clock.follow(loop)
        world = World(
            loop=loop,
            clock=self._clock,
            real=self._real,
            ids=Ids(seed=seed + 1_000_003 * self._played),
            platform=FakePlatform(name=f"sim{self._played}", capabilities=capabilities),
            plan=plan,
            settings=settings,
            wakes=Random(seed),
            ended_before=self._ended_before,
        )
        self._world = world

        async def run() -> None:
            sent = await story(world)
            await wait_until_idle(world)
            world.plan = no_fault
            self._check(world, sent)
            await world.end()

        try:
            with _quiet():
                loop.run_until_complete(run())
        finally:
            self._world = None
            self._ended_before = max(world.ends, default=self._ended_before)
            loop.close()
        return world

    def _check(self, world: World, sent: list[SentMessage]) -> None:
        name = world.platform.name
        items, deliveries, broken = world.call_store(
            self._real.read(
                lambda tx: (
                    list_fates(tx, platform=name, limit=ITEMS_MAX),
                    list_deliveries(tx, platform=name, limit=ITEMS_MAX),
                    check_invariants(tx),
                )
            )
        )
        records = SimulationRecords(
            platform=world.platform,
            sent=sent,
            items=items,
            deliveries=deliveries,
            ends=world.ends,
            effects=world.effects,
            retried=world.retried,
            undone=world.undone,
        )
        world.breaches += check_records(records)
        world.breaches += [f"{breach.rule}: {breach.what}" for breach in broken]

    def close(self) -> None:
        """Close the store."""
        asyncio.run(self._real.close())

    def _hook(self, name: str) -> None:
        if self._world is not None:
            self._world.hook(name)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the logs of the many killed gateways."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(disabled)
