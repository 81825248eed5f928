"""Crash at every point of a story: play the story once for each point, with one fault there.

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
from keryx.testing.simulator.fault_plan import FaultKind, FaultPoint, PlannedFault
from keryx.testing.simulator.records import SentMessage
from keryx.testing.simulator.script import BEFORE_SUMMARY, SUM_UP, TOOLS, numbers_in
from keryx.testing.simulator.simulation import Simulation
from keryx.testing.simulator.world import SETTINGS, World

FIRST = "node-0"
"""The gateway that gets the faults."""
IDLE_MINUTES = 1
FLUSHED_SECONDS = 7.0
"""After this time a session that expires soon has been flushed."""


class CrashPoint(NamedTuple):
    """A fault point, the fault there, and the first statement of its transaction."""

    fault_point: FaultPoint
    fault: PlannedFault
    name: str

    def __str__(self) -> str:
        """Return the point's description, to reproduce a fault."""
        inside = "" if self.fault.statement is None else f", inside before statement {self.fault.statement}"
        return (
            f"{self.fault.kind} at point {self.fault_point.no} ({self.fault_point.what} {self.name}{inside})"
        )


class CrashStory(Protocol):
    """A story that is played once for each of its points."""

    settings: Settings
    first: str | None
    """The call at which the crash points begin; None for the start."""
    reads: bool
    """Whether reads of the store are points too."""

    async def __call__(self, world: World) -> list[SentMessage]:
        """Play the story, and return the messages that people sent."""

    def covers_everything(self, world: World) -> bool:
        """Return whether the story covered its subject in a world without faults."""


class MessageStory:
    """A few messages: a stream with a preview, tools, steering, pieces, a queue and a stop."""

    settings = SETTINGS
    first: str | None = None
    reads = True

    def __init__(self, *, gateways: int = 1, short: bool = False) -> None:
        self._gateways = gateways
        self._short = short

    async def __call__(self, world: World) -> list[SentMessage]:
        """Play the story, and return the messages that people sent."""
        await _begin(world, self._gateways)
        script = [("#1 slow tools long", 1.0), ("!steer #2 hello", 0.2)]
        if not self._short:
            script += [("#3 plain", 5.0), ("#4 slow", 1.3), ("/stop", 0.0)]
        sent: list[SentMessage] = []
        for text, pause in script:
            sent += _say(world, text)
            await asyncio.sleep(pause)
        return sent

    def covers_everything(self, world: World) -> bool:
        """Return whether every tool ran exactly once."""
        return world.effects.started == {(tool, 1): 1 for tool in TOOLS}


class IdleSessionStory:
    """A session that is summarised, flushed before its expiry, and reset."""

    settings = replace(
        SETTINGS, reset=ResetPolicies(default=ResetPolicy(mode="idle", idle_minutes=IDLE_MINUTES))
    )

    first: str | None = BEFORE_SUMMARY

    def __init__(self, *, gateways: int = 1, reads: bool = True) -> None:
        self._gateways = gateways
        self.reads = reads

    async def __call__(self, world: World) -> list[SentMessage]:
        """Play the story, and return the messages that people sent."""
        await _begin(world, self._gateways)
        sent: list[SentMessage] = []
        for text in ("#1 plain", f"#2 {SUM_UP}"):
            sent += _say(world, text)
            await asyncio.sleep(1.5)
        # Move only the wall clock: the session becomes idle, and no lease expires.
        world.clock.offset += IDLE_MINUTES * MINUTE * 2 // 3
        await asyncio.sleep(FLUSHED_SECONDS)
        world.clock.offset += IDLE_MINUTES * MINUTE
        return sent + _say(world, "#3 plain")

    def covers_everything(self, world: World) -> bool:
        """Return whether there was a summary, a flush and a reset."""
        notices = world.platform.said_to("ana")
        return (
            world.effects.summaries == 1
            and world.effects.silent >= 1
            and any("fresh conversation" in text for text in notices)
        )


CRASH_STORIES: dict[str, CrashStory] = {
    "message": MessageStory(),
    "message between two": MessageStory(gateways=2),
    "short message": MessageStory(short=True),
    "short message between two": MessageStory(gateways=2, short=True),
    "over time": IdleSessionStory(reads=False),
    "over time between two": IdleSessionStory(gateways=2),
}
"""The stories by name, for the command line."""


async def _begin(world: World, gateways: int) -> None:
    world.let_in("ana")
    for number in range(gateways):
        world.start(f"node-{number}")
        await asyncio.sleep(0.3)


def _say(world: World, text: str) -> list[SentMessage]:
    said = world.platform.say(text, chat="ana", user="ana")
    return [SentMessage(number=number, chat="ana", ref=said.ref) for number in numbers_in(text)]


def list_crash_points(world: World, story: CrashStory, kind: FaultKind) -> Iterator[CrashPoint]:
    """Yield the crash points of the first gateway, from a world that was played without faults."""
    begun = story.first is None
    for fault_point in world.fault_points:
        begun = begun or fault_point.what == story.first
        if not begun or fault_point.process != FIRST or (fault_point.what == "read" and not story.reads):
            continue
        statements = world.statements.get(fault_point.no, [])
        name = statements[0] if statements else ""
        may_raise = kind == "exception"
        if (fault_point.what == "read" and not may_raise) or (
            fault_point.what.startswith("after ") and may_raise
        ):
            continue
        yield CrashPoint(fault_point, PlannedFault(kind), name)
        if fault_point.what == "write" and statements and kind != "freeze":
            yield CrashPoint(fault_point, PlannedFault(kind, len(statements)), name)


def crash_everywhere(
    simulation: Simulation, story: CrashStory, kind: FaultKind
) -> Iterator[tuple[CrashPoint, list[str]]]:
    """Play the story once for each crash point; yield each point with its breaches."""
    faultless = simulation.play(story, settings=story.settings)
    assert not faultless.breaches, faultless.breaches
    assert story.covers_everything(faultless), faultless.platform.shown
    for point in list_crash_points(faultless, story, kind):
        plan = partial(_at, point)
        world = simulation.play(story, settings=story.settings, plan=plan)
        yield point, world.breaches


def _at(point: CrashPoint, fault_point: FaultPoint) -> PlannedFault | None:
    return point.fault if fault_point.no == point.fault_point.no else None
