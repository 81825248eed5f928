"""Inject faults: kill, lose and freeze gateways, restart PostgreSQL; and measure how long recovery takes.

The seed decides the plan; the exact moment of each fault depends on the machine.
"""

import asyncio
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine
from typing import Final

from keryx.testing.torture.checks import Thaw
from keryx.testing.torture.double import LOOK_SECONDS, until
from keryx.testing.torture.effects import first_begun, open_tokens
from keryx.testing.torture.fleet import Node
from keryx.testing.torture.options import LEASE_SECONDS, TAKEN_OVER_SECONDS, Options
from keryx.testing.torture.records import UserMessage
from keryx.testing.torture.setup import TortureSetup
from keryx.testing.torture.texts import read_answer

FROZEN_SECONDS: Final = LEASE_SECONDS + 3.0
WATCHED_SECONDS: Final = 3.0
"""How long a thawed gateway is watched."""
BUSY_SECONDS: Final = 10.0
ACCEPTED_SECONDS: Final = 60.0
PAUSE_SECONDS: Final = (0.3, 1.7)
"""The range of pauses between two faults."""
KILLED_EARLY: Final = 0.08
"""The probability that a gateway is killed again while it starts."""

READY = "start to ready"
ACCEPTED = "start to an accepted message"
TAKEN_OVER = "loss to its conversations continuing"
TAKEN_OVER_ACCOUNT = "loss with the account to an accepted message"
OUTAGE = "PostgreSQL stopped to an accepted message"


class Faults:
    """Injects the planned faults."""

    def __init__(self, setup: TortureSetup, options: Options, tell: Callable[[str], None]) -> None:
        self._setup = setup
        self._options = options
        self._tell = tell
        self._rng = random.Random(f"{options.seed}/faults")
        self.tried: Counter[str] = Counter()
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)
        self.thaws: list[Thaw] = []
        self.breaches: list[str] = []
        """Breaches that no record shows: a gateway that does not start, conversations that do not continue."""

    async def start_all(self) -> None:
        """Start all gateways, and wait until each is ready."""
        for node in self._setup.nodes:
            await node.start()
        for node in self._setup.nodes:
            await self._measure_ready(node)

    async def run(self) -> None:
        """Inject all planned faults: first the long ones, at several gateways at once, then the short ones."""
        options = self._options
        room = asyncio.Semaphore(max(1, options.gateways - 1))
        recovering: list[asyncio.Task[None]] = []
        for inject in [self._lose] * options.losses + [self._freeze] * options.freezes:
            await room.acquire()
            task = asyncio.create_task(await inject())
            task.add_done_callback(lambda _: room.release())
            recovering.append(task)
        await asyncio.gather(*recovering)
        short = [self._kill] * options.kills + [self._restart] * options.restarts
        self._rng.shuffle(short)
        for work in short:
            await asyncio.sleep(self._rng.uniform(*PAUSE_SECONDS))
            await work()

    async def _kill(self) -> None:
        node = self._rng.choice(self._setup.nodes)
        async with node.lock:
            await node.kill()
            self.tried["kill -9, restarted at once"] += 1
            await node.start()
            while self._rng.random() < KILLED_EARLY:
                await asyncio.sleep(self._rng.uniform(0.0, 0.6))
                await node.kill()
                self.tried["kill -9 during the start"] += 1
                await node.start()
            await self._measure_ready(node)
            if self._options.gateways == 1:
                await self._measure_accepted(ACCEPTED, since=node.started_at)
        done = self.tried["kill -9, restarted at once"]
        self._tell(f"{node.name} killed ({done} of {self._options.kills}), {self._last(READY)} to ready")

    async def _lose(self) -> Coroutine[None, None, None]:
        """Kill a gateway that runs a turn; the returned coroutine watches the takeover and restarts the gateway."""
        holder = await self._setup.account_holder()
        free = [node for node in self._setup.nodes if not node.lock.locked()]
        others = [node for node in free if node.holder != holder]
        node = await self._busy(others) or await self._busy(free) or self._rng.choice(free)
        await node.lock.acquire()
        pid, killed_at = node.pid, time.monotonic()
        await node.kill()
        self.tried["gateway away for longer than its lease"] += 1
        tokens = open_tokens(self._setup.effect_log.read(), pid=pid)
        lost = [
            message
            for message in self._setup.records.messages.values()
            if message.token and message.token in tokens
        ]
        self._tell(f"{node.name} lost while it answered {', '.join(tokens) or 'nothing'}")
        # A stopped turn does not continue: chats send no ``/stop`` until the takeover has been seen.
        self._setup.load.may_stop = False

        async def recover() -> None:
            try:
                await asyncio.gather(*(self._watch(message, pid=pid, since=killed_at) for message in lost))
                if node.holder == holder:
                    await self._measure_accepted(
                        TAKEN_OVER_ACCOUNT, since=killed_at, seconds=TAKEN_OVER_SECONDS
                    )
                await asyncio.sleep(max(0.0, killed_at + TAKEN_OVER_SECONDS - time.monotonic()))
                await node.start()
                await self._measure_ready(node)
            finally:
                self._setup.load.may_stop = True
                node.lock.release()

        return recover()

    async def _watch(self, lost: UserMessage, *, pid: int, since: float) -> None:
        """Check that a conversation continues: another process answers in it, or its lost answer is shown."""
        records, effect_log = self._setup.records, self._setup.effect_log

        def continued_at() -> float | None:
            tokens = {message.token for message in records.messages.values() if message.chat == lost.chat}
            shown = (
                each.at for each in records.shown if each.at >= since and lost.token in read_answer(each.text)
            )
            begun = first_begun(effect_log.read(), tokens, after=since, other_than=pid)
            return min(shown, default=None) if begun is None else begun

        await until(lambda: continued_at() is not None, seconds=since + TAKEN_OVER_SECONDS - time.monotonic())
        at = continued_at()
        if at is None or at - since > TAKEN_OVER_SECONDS:
            self.breaches.append(
                f"{lost.chat} did not continue within {TAKEN_OVER_SECONDS:.0f} s after its gateway was lost"
            )
        else:
            self.seconds[TAKEN_OVER].append(at - since)

    async def _freeze(self) -> Coroutine[None, None, None]:
        """Freeze the gateway that holds the account; the returned coroutine thaws and watches it."""
        held = await self._account_at(lambda node: not node.lock.locked(), seconds=TAKEN_OVER_SECONDS)
        free = [node for node in self._setup.nodes if not node.lock.locked()]
        node = held or self._rng.choice(free)
        await self._busy([node])
        await node.lock.acquire()
        node.freeze()
        self.tried["frozen for longer than its lease"] += 1
        self._tell(f"{node.name} frozen for {FROZEN_SECONDS:.0f} s")

        async def recover() -> None:
            try:
                await asyncio.sleep(FROZEN_SECONDS)
                taken_over = await self._account_at(
                    lambda other: other is not node, seconds=TAKEN_OVER_SECONDS
                )
                at = time.monotonic()
                node.thaw()
                await asyncio.sleep(WATCHED_SECONDS)
                if taken_over is not None and await self._setup.account_holder() != node.holder:
                    self.thaws.append(Thaw(node=node.name, at=at, until=time.monotonic()))
                    self.tried["thawed after another gateway had taken over"] += 1
                self._tell(f"{node.name} thawed")
            finally:
                node.lock.release()

        return recover()

    async def _restart(self) -> None:
        server = self._setup.server
        assert server is not None, "options without a private server ask for no restart"
        since = time.monotonic()
        await asyncio.to_thread(server.restart)
        self.tried["PostgreSQL killed and restarted"] += 1
        await self._measure_accepted(OUTAGE, since=since)
        self._tell(f"PostgreSQL restarted, {self._last(OUTAGE)} to an accepted message")

    async def _busy(self, among: list[Node]) -> Node | None:
        """Wait until one of these gateways runs a turn, and return it; None after a timeout."""
        busy: list[Node] = []

        def look() -> bool:
            effects = self._setup.effect_log.read()
            busy[:] = [node for node in among if open_tokens(effects, pid=node.pid)]
            return bool(busy)

        is_found = await until(look, seconds=BUSY_SECONDS if among else 0)
        return self._rng.choice(busy) if is_found else None

    async def _account_at(self, is_wanted: Callable[[Node], bool], *, seconds: float) -> Node | None:
        """Wait until a wanted gateway holds the account, and return it; None after a timeout."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            holder = await self._setup.account_holder()
            for node in self._setup.nodes:
                if node.holder == holder and is_wanted(node):
                    return node
            await asyncio.sleep(LOOK_SECONDS)
        return None

    async def _measure_ready(self, node: Node) -> None:
        if not await node.until_ready() or node.ready_at is None:
            self.breaches.append(f"{node.name} did not start; see its log")
            return
        self.seconds[READY].append(node.ready_at - node.started_at)

    async def _measure_accepted(self, what: str, *, since: float, seconds: float = ACCEPTED_SECONDS) -> None:
        left = since + seconds - time.monotonic()
        try:
            await asyncio.wait_for(self._setup.double.probe(), left)
        except TimeoutError:
            self.breaches.append(f"{what}: not within {seconds:.0f} s")
        else:
            self.seconds[what].append(time.monotonic() - since)

    def _last(self, what: str) -> str:
        return f"{self.seconds[what][-1]:.2f} s" if self.seconds[what] else "never"
