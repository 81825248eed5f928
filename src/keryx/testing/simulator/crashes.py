"""Every crash point on the way of some messages: the story is played once for each, with one thing going wrong there.

The points are found by playing it without a fault: before and after every call to the store and the platform, inside
every transaction, and wherever the agent or a tool may die (`reliability.md`, 1 to 16 and 20).
"""

import asyncio
from collections.abc import Iterator
from typing import NamedTuple

from keryx.testing.simulator.books import Saying
from keryx.testing.simulator.script import TOOLS, numbers_in
from keryx.testing.simulator.theatre import Theatre
from keryx.testing.simulator.world import Event, How, Place, World

FIRST = "node-0"
"""The gateway to which it happens."""


class Point(NamedTuple):
    """A place, what happens there, and what the transaction there does first."""

    place: Place
    event: Event
    name: str

    def __str__(self) -> str:
        """Where it is, for whoever looks for a fault."""
        inside = "" if self.event.statement is None else f", inside before statement {self.event.statement}"
        return f"{self.event.how} at place {self.place.no} ({self.place.what} {self.name}{inside})"


class MessagesWay:
    """A story that touches everything: a stream with a preview, tools, steering, pieces, a queue and a stop."""

    def __init__(self, *, gateways: int = 1, short: bool = False) -> None:
        self._gateways = gateways
        self._short = short

    async def __call__(self, world: World) -> list[Saying]:
        """Let it happen."""
        world.let_in("ana")
        for number in range(self._gateways):
            world.start(f"node-{number}")
            await asyncio.sleep(0.3)
        script = [("#1 slow tools long", 1.0), ("!steer #2 hello", 0.2)]
        if not self._short:
            script += [("#3 plain", 5.0), ("#4 slow", 1.3), ("/stop", 0.0)]
        sayings: list[Saying] = []
        for text, pause in script:
            said = world.platform.say(text, chat="ana", user="ana")
            sayings += [Saying(number=number, chat="ana", ref=said.ref) for number in numbers_in(text)]
            await asyncio.sleep(pause)
        return sayings


def list_points(world: World, how: How) -> Iterator[Point]:
    """Yield the points of a story that was played without a fault, as far as they are the first gateway's."""
    for place in world.places:
        if place.process != FIRST:
            continue
        statements = world.statements.get(place.no, [])
        name = statements[0] if statements else ""
        may_raise = how == "exception"
        if (place.what == "read" and not may_raise) or (place.what.startswith("after ") and may_raise):
            continue
        yield Point(place, Event(how), name)
        if place.what == "write" and statements and how != "freeze":
            yield Point(place, Event(how, len(statements)), name)


def crash_everywhere(theatre: Theatre, story: MessagesWay, how: How) -> Iterator[tuple[Point, list[str]]]:
    """Play the story once for every point; yield each with the breaches it led to."""
    faultless = theatre.play(story)
    assert not faultless.breaches, faultless.breaches
    assert faultless.effects.started == {(tool, 1): 1 for tool in TOOLS}, "the way leads past every tool"
    for point in list_points(faultless, how):
        world = theatre.play(story, plan=lambda place, point=point: _at(point, place))  # type: ignore[misc]
        yield point, world.breaches


def _at(point: Point, place: Place) -> Event | None:
    return point.event if place.no == point.place.no else None
