"""Crash at every point on the way of some messages: play the story once for each point, with one fault there.

A play without faults finds the points: before and after every call to the store and the platform, inside every
transaction, and wherever the agent or a tool may die (`reliability.md`, 1 to 18 and 20).
"""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Protocol

from keryx.clock import MINUTE
from keryx.config import Settings
from keryx.core.turns.rules.reset import ResetPolicies, ResetPolicy
from keryx.testing.simulator.books import Saying
from keryx.testing.simulator.fault_plan import FaultPoint, How, PlannedFault
from keryx.testing.simulator.script import BEFORE_SUMMARY, SUM_UP, TOOLS, numbers_in
from keryx.testing.simulator.theatre import Theatre
from keryx.testing.simulator.world import SETTINGS, World

FIRST = "node-0"
"""The gateway that gets the faults."""
IDLE_MINUTES = 1
FLUSHED_SECONDS = 7.0
"""After this time a session that expires soon has been flushed."""


class Point(NamedTuple):
    """A place, the event there, and the first statement of the transaction there."""

    place: FaultPoint
    event: PlannedFault
    name: str

    def __str__(self) -> str:
        """Return the point's description, to reproduce a fault."""
        inside = "" if self.event.statement is None else f", inside before statement {self.event.statement}"
        return f"{self.event.how} at place {self.place.no} ({self.place.what} {self.name}{inside})"


class Way(Protocol):
    """A story that is played once for each of its points."""

    settings: Settings
    first: str | None
    """The place at which the points begin; None for the start."""
    reads: bool
    """Whether reads of the store are points too."""

    async def __call__(self, world: World) -> list[Saying]:
        """Play the story, and return the messages that people sent."""

    def leads_everywhere(self, world: World) -> bool:
        """Return whether the story covered its subject in a world without faults."""


class MessagesWay:
    """The way of some messages: a stream with a preview, tools, steering, pieces, a queue and a stop."""

    settings = SETTINGS
    first: str | None = None
    reads = True

    def __init__(self, *, gateways: int = 1, short: bool = False) -> None:
        self._gateways = gateways
        self._short = short

    async def __call__(self, world: World) -> list[Saying]:
        """Play the story, and return the messages that people sent."""
        await _begin(world, self._gateways)
        script = [("#1 slow tools long", 1.0), ("!steer #2 hello", 0.2)]
        if not self._short:
            script += [("#3 plain", 5.0), ("#4 slow", 1.3), ("/stop", 0.0)]
        sayings: list[Saying] = []
        for text, pause in script:
            sayings += _say(world, text)
            await asyncio.sleep(pause)
        return sayings

    def leads_everywhere(self, world: World) -> bool:
        """Return whether every tool ran exactly once."""
        return world.effects.started == {(tool, 1): 1 for tool in TOOLS}


class WayOverTime:
    """The way of a session that is summarised, flushed before its expiry, and reset."""

    settings = replace(
        SETTINGS, reset=ResetPolicies(default=ResetPolicy(mode="idle", idle_minutes=IDLE_MINUTES))
    )

    first: str | None = BEFORE_SUMMARY

    def __init__(self, *, gateways: int = 1, reads: bool = True) -> None:
        self._gateways = gateways
        self.reads = reads

    async def __call__(self, world: World) -> list[Saying]:
        """Play the story, and return the messages that people sent."""
        await _begin(world, self._gateways)
        sayings: list[Saying] = []
        for text in ("#1 plain", f"#2 {SUM_UP}"):
            sayings += _say(world, text)
            await asyncio.sleep(1.5)
        # Move only the wall clock: the session becomes idle, and no lease expires.
        world.clock.offset += IDLE_MINUTES * MINUTE * 2 // 3
        await asyncio.sleep(FLUSHED_SECONDS)
        world.clock.offset += IDLE_MINUTES * MINUTE
        return sayings + _say(world, "#3 plain")

    def leads_everywhere(self, world: World) -> bool:
        """Return whether there was a summary, a flush and a reset."""
        told = world.platform.said_to("ana")
        return (
            world.effects.summaries == 1
            and world.effects.silent >= 1
            and any("fresh conversation" in text for text in told)
        )


WAYS: dict[str, Way] = {
    "message": MessagesWay(),
    "message between two": MessagesWay(gateways=2),
    "short message": MessagesWay(short=True),
    "short message between two": MessagesWay(gateways=2, short=True),
    "over time": WayOverTime(reads=False),
    "over time between two": WayOverTime(gateways=2),
}
"""The ways by name, for the command line."""


async def _begin(world: World, gateways: int) -> None:
    world.let_in("ana")
    for number in range(gateways):
        world.start(f"node-{number}")
        await asyncio.sleep(0.3)


def _say(world: World, text: str) -> list[Saying]:
    said = world.platform.say(text, chat="ana", user="ana")
    return [Saying(number=number, chat="ana", ref=said.ref) for number in numbers_in(text)]


def list_points(world: World, way: Way, how: How) -> Iterator[Point]:
    """Yield the points of the first gateway, from a world that was played without faults."""
    begun = way.first is None
    for place in world.places:
        begun = begun or place.what == way.first
        if not begun or place.process != FIRST or (place.what == "read" and not way.reads):
            continue
        statements = world.statements.get(place.no, [])
        name = statements[0] if statements else ""
        may_raise = how == "exception"
        if (place.what == "read" and not may_raise) or (place.what.startswith("after ") and may_raise):
            continue
        yield Point(place, PlannedFault(how), name)
        if place.what == "write" and statements and how != "freeze":
            yield Point(place, PlannedFault(how, len(statements)), name)


def crash_everywhere(theatre: Theatre, way: Way, how: How) -> Iterator[tuple[Point, list[str]]]:
    """Play the way once for each point; yield each point with its breaches."""
    faultless = theatre.play(way, settings=way.settings)
    assert not faultless.breaches, faultless.breaches
    assert way.leads_everywhere(faultless), faultless.platform.shown
    for point in list_points(faultless, way, how):
        plan = partial(_at, point)
        world = theatre.play(way, settings=way.settings, plan=plan)
        yield point, world.breaches


def _at(point: Point, place: FaultPoint) -> PlannedFault | None:
    return point.event if place.no == point.place.no else None
