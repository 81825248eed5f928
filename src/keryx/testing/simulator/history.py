"""Random histories: people, platforms and gateways do everything they may do, in an order that the seed decides."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from random import Random

from keryx.clock import DAY, HOUR, MINUTE, Micros
from keryx.core.conversations.rules.source import ChatType
from keryx.core.turns.rules.inbox import Inbound
from keryx.core.turns.rules.reset import ResetPolicies, ResetPolicy
from keryx.platforms.adapter import Capabilities, Outgoing
from keryx.testing.platform import PlatformFault
from keryx.testing.simulator.fault_plan import FAULT_KINDS, FaultPoint, PlannedFault
from keryx.testing.simulator.idle import wait_until_idle
from keryx.testing.simulator.records import FAILED_WORDS, SentMessage, ShownQuestion, list_questions
from keryx.testing.simulator.script import ANSWER, WORDS
from keryx.testing.simulator.simulation import Simulation
from keryx.testing.simulator.world import SETTINGS, TooManyCalls, World

PEOPLE = {"ana": ("ana",), "desk": ("ana",), "ben": ("ben",), "family": ("ana", "ben")}
"""The readers of each chat; text from one chat may be shown in another chat with the same readers."""
CHATS = ("ana", "desk", "ben", "family")
MODES = ("", "", "", "", "!steer ", "!stop ", "!collect ", "!rollback ", "!queue ")
COMMANDS = (
    *("/stop", "/status", "/new", "/why", "/search word"),
    *("/undo", "/redo", "/compress", "/resume 1", "/resume 2", "/sessions"),
)
PLATFORM_FAULTS: tuple[PlatformFault, ...] = ("reject", "lose the message", "lose the receipt", "limit")
ATTACH_COMMANDS = ("/attach 1", "/attach 1", "/attach 2", "/detach")
VERDICTS = ("/approve", "/approve", "/deny")
LATE_TRIES = 3
LATE_SECONDS = 4.0
PAUSES = (0.0, 0.0, 0.05, 0.4, 2.0, 8.0)
EVENTS_MAX = 4
RESET_AFTER_MINUTES = 1
WEIGHTS = {"read": 0.1, "write": 1.0}
OTHER_WEIGHT = 5.0
"""Most calls are reads of an unchanged store; the calls worth a fault are the others."""
STATEMENTS_MAX = 16
EARLY_RESET = replace(
    SETTINGS, reset=ResetPolicies(default=ResetPolicy(mode="idle", idle_minutes=RESET_AFTER_MINUTES))
)
"""Settings with an early reset, and a flush before it."""
PROBED_AFTER = 8 * DAY
"""After this time every dead chat has been probed again."""
CLOCK_CORRECTIONS: tuple[Micros, ...] = (-2 * MINUTE, HOUR, 26 * HOUR)


class History:
    """A story and a plan of faults, drawn from a seed."""

    def __init__(self, seed: int, *, steps: int = 8) -> None:
        self._draw = Random(seed)
        self._steps = steps
        self._numbers = 0
        self._sent: list[SentMessage] = []
        self._delivered: list[Inbound] = []
        self._gone: set[str] = set()
        """Chats that were dead once, so that deliveries to them may wait long for a probe."""
        self._answered: set[int] = set()
        """The answered questions."""
        self._answers_late = False
        """Whether to answer the last question, after a message has asked for a call that needs approval."""
        self._events = 0
        self._chance = self._draw.choice((0.0, 0.005, 0.01, 0.03))
        self._fault_chance = self._draw.choice((0.0, 0.0, 0.15))
        self.settings = self._draw.choice((SETTINGS, SETTINGS, EARLY_RESET))
        self.capabilities = Capabilities(
            text_max=120, edits=self._draw.random() < 0.6, deduplicates=self._draw.random() < 0.2
        )

    async def story(self, world: World) -> list[SentMessage]:
        """Play the history, and return the messages that people sent."""
        world.let_in("ana", "ben")
        world.platform.before_send = self._draw_fault
        for number in range(self._draw.choice((1, 1, 2, 3))):
            world.start(f"node-{number}")
        for _ in range(self._steps):
            await self._step(world)
            await asyncio.sleep(self._draw.choice(PAUSES))
        await self._answer_late(world)
        await self._revive_chats(world)
        return self._sent

    async def _step(self, world: World) -> None:
        """Do the next step; an open question is likely to be answered soon."""
        steps: dict[Callable[[World], Awaitable[None]], int] = {
            self._say: 11,
            self._say_again: 2,
            self._command: 2,
            self._retry: 2,
            self._join: 3,
            self._answer: 8 if self._list_open(world) else 0,
            self._kill_or_revive_chat: 1,
            self._disturb_platform: 2,
            self._drain_gateway: 1,
            self._correct_clock: 1,
        }
        [step] = self._draw.choices(list(steps), weights=list(steps.values()))
        await step(world)

    async def _answer_late(self, world: World) -> None:
        """Answer the last question, if ``_answers_late``."""
        for _ in range(LATE_TRIES if self._answers_late else 0):
            await asyncio.sleep(LATE_SECONDS)
            if self._list_open(world):
                await self._answer(world)

    async def _revive_chats(self, world: World) -> None:
        """Revive dead chats after all other chats have settled: dead chats must not delay others."""
        if self._gone:
            await wait_until_idle(world, but=self._gone)
            world.platform.gone.clear()
            world.clock.offset += PROBED_AFTER

    def plan(self, point: FaultPoint) -> PlannedFault | None:
        """Return a fault for a fault point now and then, else None."""
        weight = WEIGHTS.get(point.what.removeprefix("after "), OTHER_WEIGHT)
        if self._draw.random() >= self._chance * weight or self._events >= EVENTS_MAX:
            return None
        self._events += 1
        kind = self._draw.choice(FAULT_KINDS)
        if point.what == "write" and kind != "freeze" and self._draw.random() < 0.5:
            return PlannedFault(kind, self._draw.randint(1, STATEMENTS_MAX))
        return PlannedFault(kind)

    async def _say(self, world: World) -> None:
        self._say_something(world, chat=self._draw.choice(CHATS))

    def _say_something(self, world: World, *, chat: str) -> None:
        self._numbers += 1
        words = " ".join(self._draw.sample(WORDS, self._draw.choice((0, 0, 1, 1, 2))))
        if "asks" in words:
            self._answers_late = self._draw.random() < 0.6
        self._tell(world, f"{self._draw.choice(MODES)}#{self._numbers} {words}", chat=chat)
        others = set(CHATS) - {chat}
        self._sent.append(
            SentMessage(
                number=self._numbers,
                chat=chat,
                ref=self._delivered[-1].ref,
                audience=frozenset(each for each in others if set(PEOPLE[each]) <= set(PEOPLE[chat])),
                beside=frozenset(each for each in others if PEOPLE[each] == PEOPLE[chat]),
            )
        )

    async def _say_again(self, world: World) -> None:
        if self._delivered:
            world.platform.deliver(self._draw.choice(self._delivered))

    async def _command(self, world: World) -> None:
        command, chat = self._draw.choice(COMMANDS), self._draw.choice(CHATS)
        world.undone[chat] += command == "/undo"
        self._tell(world, command, chat=chat)

    async def _retry(self, world: World) -> None:
        """Say ``/retry`` in a chat with an answer, preferably with a failed one."""
        failed = [each.to.chat_id for each in world.platform.shown if FAILED_WORDS in each.text]
        answered = [each.to.chat_id for each in world.platform.shown if each.text.startswith(ANSWER)]
        chat = self._draw.choice(failed or answered or CHATS)
        world.retried[chat] += 1
        self._tell(world, "/retry", chat=chat)

    async def _join(self, world: World) -> None:
        """In one of two chats with the same reader, attach to the other's session, detach, or send a message."""
        answered = {each.to.chat_id for each in world.platform.shown} & {"ana", "desk"}
        if not answered or self._draw.random() < 0.4:
            self._say_something(world, chat=self._draw.choice(("ana", "desk")))
            return
        chat = "desk" if "ana" in answered else "ana"
        self._tell(world, self._draw.choice(ATTACH_COMMANDS), chat=chat)

    def _list_open(self, world: World) -> list[ShownQuestion]:
        """Return the visible questions without an answer."""
        return [each for each in list_questions(world.platform) if each.no not in self._answered]

    async def _answer(self, world: World) -> None:
        """Answer a question, usually by its number."""
        question, verdict = self._draw.choice(self._list_open(world)), self._draw.choice(VERDICTS)
        self._answered.add(question.no)
        is_yes = verdict == "/approve"
        if self._draw.random() < 0.7:
            verdict = f"{verdict} {question.no}"
            if is_yes:
                world.effects.allowed.setdefault(question.about, set()).add(question.no)
        elif is_yes:
            world.effects.allowed_vaguely += 1
        self._tell(world, verdict, chat=question.chat)

    async def _kill_or_revive_chat(self, world: World) -> None:
        """Make a chat dead, or revive all; a chat that revives without a message is found by probing."""
        if world.platform.gone:
            world.platform.gone.clear()
            return
        chat = self._draw.choice(CHATS)
        world.platform.gone.add(chat)
        self._gone.add(chat)

    def _tell(self, world: World, text: str, *, chat: str) -> None:
        user = self._draw.choice(PEOPLE[chat])
        chat_type: ChatType = "group" if chat == "family" else "dm"
        world.platform.gone.discard(chat)  # a chat that sends is not dead
        self._delivered.append(world.platform.say(text, chat=chat, user=user, chat_type=chat_type))

    async def _disturb_platform(self, world: World) -> None:
        self._draw.choice((world.platform.reorder, world.platform.cut, self._send_malformed(world)))()

    def _send_malformed(self, world: World) -> Callable[[], None]:
        return lambda: world.platform.send_malformed("{")

    async def _drain_gateway(self, world: World) -> None:
        if world.alive:
            await world.drain(self._draw.choice(world.alive))

    async def _correct_clock(self, world: World) -> None:
        """Correct the wall clock, which must not affect leases."""
        world.clock.offset += self._draw.choice(CLOCK_CORRECTIONS)

    def _draw_fault(self, _: Outgoing) -> PlatformFault | None:
        return self._draw.choice(PLATFORM_FAULTS) if self._draw.random() < self._fault_chance else None


def run_histories(seeds: range, *, address: str | None = None) -> Iterator[tuple[int, list[str]]]:
    """Play a history for every seed, in memory or all on the store at ``address``; yield the breaches of each."""
    simulation = Simulation(address)
    for seed in seeds:
        history = History(seed)
        try:
            world = simulation.play(
                history.story,
                seed=seed,
                plan=history.plan,
                capabilities=history.capabilities,
                settings=history.settings,
            )
        except TooManyCalls as error:
            yield seed, [f"the world did not stop: {error}"]
        else:
            yield seed, world.breaches
    simulation.close()
