"""Random histories: people, platforms and gateways do everything they may do, in an order made by a seed alone."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from random import Random

from keryx.clock import HOUR, MINUTE, Micros
from keryx.domain.inbox import Inbound
from keryx.domain.reset import ResetPolicies, ResetPolicy
from keryx.domain.source import ChatType
from keryx.platforms.adapter import Capabilities, Outgoing
from keryx.testing.platform import Trouble
from keryx.testing.simulator.books import Saying
from keryx.testing.simulator.script import WORDS
from keryx.testing.simulator.theatre import Theatre
from keryx.testing.simulator.world import HOWS, SETTINGS, Event, Place, Runaway, World

CHATS = ("ana", "ben", "family")
MODES = ("", "", "", "", "!steer ", "!stop ", "!collect ", "!rollback ", "!queue ")
COMMANDS = (
    *("/stop", "/status", "/new", "/why", "/search word"),
    *("/undo", "/redo", "/compress", "/resume 1", "/resume 2", "/sessions"),
)
TROUBLES: tuple[Trouble, ...] = ("reject", "lose the message", "lose the receipt", "limit")
PAUSES = (0.0, 0.0, 0.05, 0.4, 2.0, 8.0)
EVENTS_MAX = 4
FORGOTTEN_AFTER_MINUTES = 1
WEIGHTS = {"read": 0.1, "write": 1.0}
OTHER_WEIGHT = 5.0
"""Most calls are looks at a store in which nothing is new; what is worth disturbing happens between them."""
STATEMENTS_MAX = 16
FORGETFUL = replace(
    SETTINGS, reset=ResetPolicies(default=ResetPolicy(mode="idle", idle_minutes=FORGOTTEN_AFTER_MINUTES))
)
"""Conversations that start over soon, with a flush before."""
JUMPS: tuple[Micros, ...] = (-2 * MINUTE, HOUR, 26 * HOUR)


class History:
    """What happens, drawn from a seed: give ``story`` and ``plan`` to a theatre."""

    def __init__(self, seed: int, *, acts: int = 8) -> None:
        self._draw = Random(seed)
        self._acts = acts
        self._numbers = 0
        self._sayings: list[Saying] = []
        self._delivered: list[Inbound] = []
        self._events = 0
        self._chance = self._draw.choice((0.0, 0.005, 0.01, 0.03))
        self._trouble = self._draw.choice((0.0, 0.0, 0.15))
        self.settings = self._draw.choice((SETTINGS, SETTINGS, FORGETFUL))
        self.capabilities = Capabilities(
            text_max=120, edits=self._draw.random() < 0.6, deduplicates=self._draw.random() < 0.2
        )

    async def story(self, world: World) -> list[Saying]:
        """Let it happen."""
        world.let_in("ana", "ben")
        world.platform.before_send = self._go_wrong
        for number in range(self._draw.choice((1, 1, 2, 3))):
            world.start(f"node-{number}")
        does: dict[Callable[[World], Awaitable[None]], int] = {
            self._say: 12,
            self._say_again: 2,
            self._command: 2,
            self._disturb: 2,
            self._leave: 1,
            self._jump: 1,
        }
        for _ in range(self._acts):
            [act] = self._draw.choices(list(does), weights=list(does.values()))
            await act(world)
            await asyncio.sleep(self._draw.choice(PAUSES))
        return self._sayings

    def plan(self, place: Place) -> Event | None:
        """Let something happen at a place, now and then."""
        weight = WEIGHTS.get(place.what.removeprefix("after "), OTHER_WEIGHT)
        if self._draw.random() >= self._chance * weight or self._events >= EVENTS_MAX:
            return None
        self._events += 1
        how = self._draw.choice(HOWS)
        if place.what == "write" and how != "freeze" and self._draw.random() < 0.5:
            return Event(how, self._draw.randint(1, STATEMENTS_MAX))
        return Event(how)

    async def _say(self, world: World) -> None:
        self._numbers += 1
        chat = self._draw.choice(CHATS)
        words = " ".join(self._draw.sample(WORDS, self._draw.choice((0, 0, 1, 1, 2))))
        self._tell(world, f"{self._draw.choice(MODES)}#{self._numbers} {words}", chat=chat)
        said = self._delivered[-1]
        audience = frozenset({"ana", "ben"}) if chat == "family" else frozenset()
        self._sayings.append(Saying(number=self._numbers, chat=chat, ref=said.ref, audience=audience))

    async def _say_again(self, world: World) -> None:
        if self._delivered:
            world.platform.deliver(self._draw.choice(self._delivered))

    async def _command(self, world: World) -> None:
        self._tell(world, self._draw.choice(COMMANDS), chat=self._draw.choice(CHATS))

    def _tell(self, world: World, text: str, *, chat: str) -> None:
        user = chat if chat != "family" else self._draw.choice(("ana", "ben"))
        chat_type: ChatType = "group" if chat == "family" else "dm"
        self._delivered.append(world.platform.say(text, chat=chat, user=user, chat_type=chat_type))

    async def _disturb(self, world: World) -> None:
        self._draw.choice((world.platform.reorder, world.platform.cut, self._garble(world)))()

    def _garble(self, world: World) -> Callable[[], None]:
        return lambda: world.platform.garble("{")

    async def _leave(self, world: World) -> None:
        if world.alive:
            await world.leave(self._draw.choice(world.alive))

    async def _jump(self, world: World) -> None:
        """Let the wall clock be corrected, which no lease may notice."""
        world.clock.offset += self._draw.choice(JUMPS)

    def _go_wrong(self, _: Outgoing) -> Trouble | None:
        return self._draw.choice(TROUBLES) if self._draw.random() < self._trouble else None


def run_histories(seeds: range, *, address: str | None = None) -> Iterator[tuple[int, list[str]]]:
    """Play a history for every seed, in memory or all on the store at ``address``; yield the breaches of each."""
    theatre = Theatre(address)
    for seed in seeds:
        history = History(seed)
        try:
            world = theatre.play(
                history.story,
                seed=seed,
                plan=history.plan,
                capabilities=history.capabilities,
                settings=history.settings,
            )
        except Runaway as runaway:
            yield seed, [f"far too much happens: {runaway}"]
        else:
            yield seed, world.breaches
    theatre.close()
